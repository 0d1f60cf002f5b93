// The index file of a container, and what it says of entries.
#include "chexnet/storage/index_text.hpp"
#include "fuzz/index_sum.hpp"

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

void mend(std::vector<std::byte>& bytes) { mend_index_sum(bytes, ""); }

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
