// The index file of a container, and what it says of entries.
#include "chexnet/core/checksum.hpp"
#include "chexnet/storage/index_text.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  std::vector<Entry> entries;
  if (!accepted<DataError>(
          [&] { entries = entries_of_text(text_of(bytes), "x.index"); }))
    return;
  require(entries_of_text(all_fields_text(entries), "again") == entries,
          "entries that are written read back equal");
  constexpr uint64_t kSize = 1 << 20;
  for (const auto& entry : entries)
    for (const auto kind : {ContainerKind::kTar, ContainerKind::kTarGz,
                            ContainerKind::kTfrecord}) {
      if (!is_possible(entry, kind, kSize)) continue;
      const uint64_t inside =
          kind == ContainerKind::kTarGz ? entry.stored : entry.length;
      require(entry.offset <= kSize && inside <= kSize - entry.offset,
              "a possible entry lies inside its container");
    }
}

// The last line's checksum.
void mend(std::vector<std::byte>& bytes) {
  std::string text = text_of(bytes);
  const auto sum = text.rfind("crc32c ");
  if (sum == std::string::npos) return;
  text.resize(sum + 7);
  const uint32_t crc = crc32c(std::as_bytes(std::span(text)));
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 7; i >= 0; --i) text += kDigits[crc >> (4 * i) & 15];
  bytes = bytes_of(text + "\n");
}

std::vector<std::string> seeds() {
  const Entry plain{.name = "a b\t\\.png", .offset = 512, .length = 3000};
  const Entry packed{.name = "images/1.png",
                     .offset = 40,
                     .length = 900,
                     .stored = 800,
                     .skip = 700,
                     .bit = 3,
                     .crc32c = 0xdeadbeef,
                     .window = {{1, 2}, {32767, 255}}};
  return {index_text({plain}, ContainerKind::kTar, {"x.tar", 9000, "v1"}),
          index_text({packed, packed}, ContainerKind::kTarGz, {"x.tar.gz", 9}),
          index_text({plain}, ContainerKind::kTfrecord, {"x", 9}),
          all_fields_text({plain, packed})};
}

const Registered kTarget{{"index", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
