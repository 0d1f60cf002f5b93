// Where each image of the manifest is: a single file, or a part of an archive,
// shard or pack. data.images names folders, single containers or s3://
// prefixes; all are searched with their sub-folders (NIH's images_001/images
// …). Rank 0 scans and shares the result as text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"
#include "chexnet/data/storage/entry.hpp"
#include "chexnet/data/storage/stores.hpp"

namespace chexnet {

struct Container {
  ContainerKind kind = ContainerKind::kFile;
  std::string path;
  uint64_t size = 0;  // bytes
  // Which content it was when it was indexed, as StoredFile has it; empty for
  // plain files.
  std::string version{}, inode{};
  uint32_t head_crc32c = 0;  // of a pack: PackReader::head_crc32c()
  bool operator==(const Container&) const = default;
};

struct ImageLocation {
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint32_t container = kNowhere;
  uint64_t number = 0;  // of the part within its container
  Entry entry;          // its name is left out
  bool operator==(const ImageLocation&) const = default;
};

// Every image that `sources` hold, by its name: files that are neither
// containers nor tables, and the parts of containers.
struct FoundImage {
  std::string name;  // path of the file, or name within the container
  ImageLocation location;
};
// Calls `tick` for every file and piece that was read, from any thread.
using Tick = std::function<void()>;
std::vector<FoundImage> find_images(
    const std::vector<std::string>& sources, Stores& stores,
    std::vector<Container>& containers, const Tick& tick = [] {});

class ImageIndex {
 public:
  // Finds `rows` of the manifest below `sources`; shows progress where
  // containers must be read through. AbsentError: a source is absent, images
  // are missing (count and first rows). DataError: a name is found at two
  // locations, or one location is that of two rows. Links to one file are one
  // location.
  static ImageIndex scan(
      const Manifest& manifest, const std::vector<uint32_t>& rows,
      const std::vector<std::string>& sources, Stores& stores,
      const Tick& tick = [] {});
  // The same for data.missing=skip: rows whose images are missing have no
  // location.
  static ImageIndex scan_present(
      const Manifest& manifest, const std::vector<uint32_t>& rows,
      const std::vector<std::string>& sources, Stores& stores,
      const Tick& tick = [] {});
  // The part of scan() that knows the sources' images already: rows without an
  // image go to `missing`. DataError: a name is found at two locations, one
  // location is that of two rows.
  static ImageIndex match(const Manifest& manifest,
                          const std::vector<uint32_t>& rows,
                          const std::vector<FoundImage>& found,
                          const std::vector<Container>& containers,
                          std::vector<uint32_t>& missing);
  // All of them: row i is found[i].
  static ImageIndex of_found(std::vector<FoundImage> found,
                             std::vector<Container> containers);
  std::string to_text() const;
  // DataError when a number cannot be.
  static ImageIndex from_text(const std::string& text);

  // The same container at another path.
  void move_container(const std::string& from, const std::string& to);
  const std::vector<Container>& containers() const { return containers_; }
  const ImageLocation& location(uint32_t row) const { return locations_[row]; }
  bool has(uint32_t row) const {
    return locations_[row].container != ImageLocation::kNowhere;
  }
  bool operator==(const ImageIndex&) const = default;

 private:
  std::vector<Container> containers_;
  std::vector<ImageLocation> locations_;  // [row]; kNowhere: not wanted
};

}  // namespace chexnet
