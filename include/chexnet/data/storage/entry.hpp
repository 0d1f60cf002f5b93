// The parts of a container file (tar, TFRecord shard): names and offsets, found
// by reading the container once and kept in a text file beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/data/storage/store.hpp"

namespace chexnet {

// Members of archives above this are not read.
inline constexpr uint64_t kLargestImage = uint64_t{256} << 20;  // bytes

struct Entry {
  std::string name{};  // as the container has it: any bytes
  // tar: of the content; TFRecord: of the record; tar.gz: of the byte of the
  // .gz file that inflating starts with.
  uint64_t offset = 0;
  // Bytes of the content (tar, tar.gz), of the record's data (TFRecord) or of
  // the file that the pixels come from (pack).
  uint64_t length = 0;
  uint64_t stored = 0;  // tar.gz: bytes of the .gz file that cover the content
  // tar: bytes of the headers that lie before the content; tar.gz: bytes to
  // inflate and drop before it.
  uint64_t skip = 0;
  // tar.gz: bits of byte `offset` that belong to what comes before
  int bit = 0;
  // tar: of the headers and the content; tar.gz: of the content; TFRecord: of
  // the record's data; pack: of the file that the pixels come from.
  uint32_t crc32c = 0;
  // tar.gz: the bytes before `offset` that the content refers back to: position
  // in the 32 KiB window, value.
  std::vector<std::pair<uint16_t, uint8_t>> window{};

  bool operator==(const Entry&) const = default;
};

enum class ContainerKind {
  kFile,
  kTar,
  kTarGz,
  kTfrecord,
  kPack,
  kLast = kPack
};
// By name: *.tar, *.tar.gz/*.tgz, *.pack, *.tfrecord(s) or *-00000-of-00012;
// all else is a file.
ContainerKind container_kind(const std::string& path);
bool is_index_file(const std::string& path);  // *.index

using ShowProgress = std::function<void(uint64_t done_bytes)>;

// Reads the container through, or its index file where a good one is there:
// beside the container, or in the user's cache folder. An index beside a local
// container counts only when it belongs to the caller, root or the container's
// owner and nobody else may write it; one of an older or newer content, or with
// impossible numbers, is ignored. A new index goes beside the container when
// the caller owns it (or is root), so that every user of the data trusts it,
// with the container's permissions to read; else, and for objects, into the
// cache folder. DataError: damaged container (path, offset).
std::vector<Entry> container_entries(Store& store, const StoredFile& file,
                                     ContainerKind kind,
                                     const ShowProgress& progress);

}  // namespace chexnet
