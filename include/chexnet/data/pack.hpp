// A pack: the images of a data set resized once to one size, as raw 8-bit
// pixels at a fixed stride. Mapped into memory, so all ranks of a node share it
// through the page cache and a random crop is a memory copy.
//
//   0      "CHXPACK1", uint32 length and uint32 CRC32C of the JSON that
//          follows: images, side, resize_kind, jpeg_scale, stride, names_bytes,
//          table_offset, data_offset, source_sha256, CRC32C of names and table
//   4096   names, one per line
//   …      table: one PackEntry per image
//   …      pixels, image i at data_offset + i * stride (data_offset a multiple
//          of 4096)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/data/image/resize.hpp"
#include "chexnet/data/mapped_file.hpp"
#include "chexnet/data/storage/store.hpp"

namespace chexnet {

struct PackEntry {
  uint32_t pixels_crc32c = 0;
  uint32_t source_crc32c = 0;  // of the file the pixels come from
  uint64_t source_bytes = 0;
  // kPackDone once the three above and the pixels are written, kPackDamaged.
  uint64_t done = 0;
};
constexpr uint64_t kPackDone = 0x656e6f44;
// Its source was damaged: there are no pixels.
constexpr uint64_t kPackDamaged = 0x64616d44;

struct PackShape {
  int side = 0;  // pixels
  ResizeKind kind = ResizeKind::kAntialias;
  std::vector<std::string> names;
  bool scaled_jpeg = true;  // as Preprocessing::scale_jpeg
};

// Thread-safe once made.
class PackReader {
 public:
  // Reads header, names and table. Local packs are mapped, but on network file
  // systems and object stores each image is read separately. DataError: not a
  // pack, damaged, cut off; else as Store.
  PackReader(std::string path, Store& store);

  const PackShape& shape() const { return shape_; }
  const std::string& source_sha256() const { return source_sha256_; }
  // Of the first page, which holds the checksums of names and table: another
  // pack has another.
  uint32_t head_crc32c() const { return head_crc32c_; }
  const PackEntry& entry(uint64_t image) const { return table_[image]; }
  // [side, side]; in the mapped file, or in `scratch`. The checksum is
  // verified. DataError names path and image: a wrong checksum, or it was
  // damaged when the pack was written.
  std::span<const std::byte> pixels(uint64_t image,
                                    std::vector<std::byte>& scratch,
                                    const ReadOptions& options = {}) const;

 private:
  std::string path_;
  Store& store_;
  PackShape shape_;
  std::string source_sha256_;
  uint32_t head_crc32c_ = 0;
  uint64_t stride_ = 0, data_offset_ = 0;
  std::vector<PackEntry> table_;
  std::unique_ptr<const MappedFile> map_;  // null: not mapped
};

// Writes a pack from any number of processes and threads, each image by one of
// them. An interrupted pack continues where it was: what is marked as done and
// still has its checksum stays.
class PackWriter {
 public:
  // Makes (or continues) path.partial. One process calls this before the others
  // make a writer. DataError: a name has a line break.
  static void prepare(const std::string& path, const PackShape& shape);
  // Opens what prepare() made. CheckpointError when it cannot be written.
  PackWriter(std::string path, const PackShape& shape);
  ~PackWriter();
  PackWriter(const PackWriter&) = delete;
  PackWriter& operator=(const PackWriter&) = delete;

  // Whether it is there with its checksum; `scratch` is memory to read it to.
  // image < images.
  bool has(uint64_t image, std::vector<std::byte>& scratch) const;
  void write(uint64_t image, std::span<const uint8_t> pixels,
             std::span<const std::byte> source);
  // The image cannot be had: the pack is complete without it. A later start
  // looks at it again.
  void leave_out(uint64_t image);
  // One process, after all others have written: checks that nothing is missing,
  // writes the header, syncs, renames. Returns the source's SHA-256. Calls
  // `tick` for each piece that reached the disk.
  std::string finish(const std::function<void()>& tick = [] {});

 private:
  void sync(const std::function<void()>& tick) const;
  std::string path_;
  PackShape shape_;
  uint64_t table_offset_ = 0, data_offset_ = 0, stride_ = 0;
  int fd_ = -1;
};

}  // namespace chexnet
