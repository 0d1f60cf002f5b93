// A damaged index beside a sound archive, or the other way round: whatever an
// entry that was found possible says, inflating its member ends in the content
// or in a DataError.
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  Reader fields(bytes);
  Entry e;
  e.skip = static_cast<uint64_t>(fields.number(0, 65535));
  e.length = static_cast<uint64_t>(fields.number(0, 65535));
  e.bit = fields.byte() % 8;
  for (int count = fields.byte() % 8; count > 0; --count) {
    const auto at = static_cast<uint16_t>(fields.number(0, 65535));
    e.window.emplace_back(at, fields.byte());
  }
  e.stored = fields.rest().size();
  if (!is_possible(e, ContainerKind::kTarGz, e.stored)) return;
  std::vector<std::byte> content;
  if (accepted<DataError>(
          [&] { inflate_member(fields.rest(), e, "x.tar.gz", content); }))
    require(content.size() == e.length, "all of the content comes");
}

std::vector<std::string> seeds() {
  const std::string stored_block("\x01\x05\x00\xfa\xffhello", 10);
  const std::string head("\x00\x00\x00\x05\x00\x00", 6);
  return {head + stored_block,
          raw("\x00\x02\x00\x03\x00\x01\x00\x07\x41") + stored_block,
          // Three bytes of the fixed code, then the trailer of the gzip member.
          head + raw("\x4b\x4c\x4a\x4e\x49\x05\x00\x56\xef\x99")};
}

const Registered kTarget{{"gzip_member", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
