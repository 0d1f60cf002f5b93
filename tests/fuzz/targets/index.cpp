// The index file of a container, and what it says of entries.
#include "chexnet/data/storage/index_text.hpp"
#include "fuzz/index_sum.hpp"

namespace chexnet::fuzz {
namespace {

// The index of this container, as far as its kind keeps what an entry says.
void check_index(const std::vector<Entry>& entries, ContainerKind kind,
                 const StoredFile& file) {
  const auto again =
      entries_of_text(index_text(entries, kind, file), "again.index");
  require(again.size() == entries.size(), "an index has all entries");
  require(kind != ContainerKind::kTarGz || again == entries,
          "an index of a tar.gz keeps all that an entry says");
  for (size_t i = 0; i < entries.size(); ++i)
    require(again[i].name == entries[i].name &&
                again[i].offset == entries[i].offset &&
                again[i].length == entries[i].length,
            "an entry's place reads back equal");
}

void run(Bytes bytes) {
  std::vector<Entry> entries;
  if (!accepted<DataError>(
          [&] { entries = entries_of_text(text_of(bytes), "x.index"); }))
    return;
  require(entries_of_text(all_fields_text(entries), "again") == entries,
          "entries that are written read back equal");
  for (const auto kind :
       {ContainerKind::kFile, ContainerKind::kTarGz, ContainerKind::kPack})
    check_index(entries, kind, {"x", 9000, "v 1"});
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
