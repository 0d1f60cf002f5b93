// TFRecord shards: every entry lies inside and its record has an image.
#include "chexnet/data/storage/tfrecord.hpp"

#include <cstring>

#include "chexnet/core/checksum.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "fuzz/example_parts.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  MemoryStore store(bytes);
  std::vector<Entry> entries;
  if (!accepted<DataError>([&] {
        entries =
            tfrecord_entries(store, {"x.tfrecord", bytes.size()}, [](auto) {});
      }))
    return;
  for (const auto& e : entries) {
    require(is_possible(e, ContainerKind::kTfrecord, bytes.size()),
            "an entry lies inside its shard");
    const auto data = record_data(bytes.subspan(e.offset), "x", e.offset, 0);
    require(data.size() == e.length, "a record is as long as its entry says");
    require(stored_crc32c(data) == e.crc32c && crc32c(data) == e.crc32c,
            "an entry has the checksum of its record");
    accepted<DataError>([&] { example_image(data, "x"); });
  }
}

// Lengths are made to fit, too.
void mend(std::vector<std::byte>& bytes) {
  const auto masked = [](Bytes of) {
    const uint32_t crc = crc32c(of);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  for (size_t at = 0; bytes.size() - at >= kRecordHead + kRecordTail;) {
    const uint64_t most = bytes.size() - at - kRecordHead - kRecordTail;
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], 8);
    length = std::min(length, most);
    std::memcpy(&bytes[at], &length, 8);
    const std::span all(bytes);
    const uint32_t head = masked(all.subspan(at, 8));
    const uint32_t tail = masked(all.subspan(at + kRecordHead, length));
    std::memcpy(&bytes[at + 8], &head, 4);
    std::memcpy(&bytes[at + kRecordHead + length], &tail, 4);
    at += kRecordHead + length + kRecordTail;
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> shards;
  std::string both;
  for (const auto& example : example_seeds()) {
    shards.emplace_back();
    append_record(shards.back(), example);
    both += shards.back();
  }
  shards.push_back(both);
  return shards;
}

const Registered kTarget{{"tfrecord", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
