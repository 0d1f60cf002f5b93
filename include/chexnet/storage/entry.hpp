// The parts of a container file (tar, TFRecord shard): names and places, found by reading the
// container once and kept in a text file beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/storage/store.hpp"

namespace chexnet {

struct Entry {
  std::string name;          // as the container has it
  std::uint64_t offset = 0;  // tar: of the content; TFRecord: of the record; tar.gz: of the byte of
                             // the .gz file that inflating starts with
  std::uint64_t length =
      0;  // bytes of the content (tar, tar.gz) or of the record's data (TFRecord)
  std::uint64_t stored = 0;  // tar.gz: bytes of the .gz file that cover the content
  std::uint32_t skip = 0;    // tar.gz: bytes to inflate and drop before the content
  int bit = 0;               // tar.gz: bits of byte `offset` that belong to what comes before
  std::uint32_t crc32c = 0;  // of the content; TFRecords carry their own
  // tar.gz: the bytes before `offset` that the content refers back to: position in the 32 KiB
  // window, value.
  std::vector<std::pair<std::uint16_t, std::uint8_t>> window;

  bool operator==(const Entry&) const = default;
};

enum class ContainerKind { kFile, kTar, kTarGz, kTfrecord, kPack };
// By name: *.tar, *.tar.gz/*.tgz, *.pack, *.tfrecord(s) or *-00000-of-00012; all else is a file.
ContainerKind container_kind(const std::string& path);
bool is_index_file(const std::string& path);  // *.index

using ShowProgress = std::function<void(std::uint64_t done_bytes)>;

// Reads the container through, or its index file where there is one for a container of this size;
// writes the index file beside a local container, or into the user's cache folder where that cannot
// be written. DataError: damaged container (path, offset).
std::vector<Entry> container_entries(Store& store, const StoredFile& file, ContainerKind kind,
                                     const ShowProgress& progress);

// The text of an index file, and back. DataError naming `origin` when damaged.
std::string entries_text(const std::vector<Entry>& entries, ContainerKind kind,
                         std::uint64_t container_size);
std::vector<Entry> entries_of_text(const std::string& text, const std::string& origin);

}  // namespace chexnet
