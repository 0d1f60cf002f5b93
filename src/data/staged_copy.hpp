// The copy of one container on a disk of the node, made piece by piece.
//
//   ROOT/<path>/<content>/NAME        complete
//   ROOT/<path>/<content>/NAME.part   on the way there
//   ROOT/<path>/<content>/NAME.sums   CRC32C of each piece, one per line
//
// <path> and <content> are hashes of the source's path, and of its size,
// version, inode and head: a container that was replaced gets another copy. A
// killed copy is continued: each piece whose sum still holds stays. ROOT must
// be a folder of this user alone, and one process at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "chexnet/data/image_index.hpp"

namespace chexnet {

class StagedCopy {
 public:
  StagedCopy(const std::filesystem::path& root, Container source);
  const std::filesystem::path& path() const { return path_; }

  // Looks at what is there; returns the bytes that are still to be copied.
  // `tick` hears of each piece.
  uint64_t check(const Tick& tick);
  // After check(): copies what is missing; `copied` hears of the bytes. Then
  // compares the head of the copy with the source's. DataError when the disk is
  // full or returns other bytes, or the source changed.
  void complete(Store& store,
                const std::function<void(uint64_t bytes)>& copied);

 private:
  uint64_t pieces() const;
  uint64_t piece_bytes(uint64_t piece) const;
  void copy_missing(Store& store, int file, int sums,
                    const std::function<void(uint64_t)>& copied);
  void verify(int file, uint64_t piece, std::vector<std::byte>& bytes) const;
  void compare_heads(Store& store) const;
  void remove_stale_parts() const;

  Container source_;
  std::filesystem::path folder_, path_, part_, sums_path_;
  std::vector<uint32_t> sums_;  // [piece]; as far as pieces were copied
  std::vector<bool> good_;      // [piece]
};

}  // namespace chexnet
