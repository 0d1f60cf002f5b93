// Where each image of the manifest lies on disk. Folders are scanned once, with their sub-folders
// (NIH's images_001/images …); rank 0 scans and shares the result as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

class ImageIndex {
 public:
  // Finds `rows` of the manifest below `folders`. DataError: a folder is absent, images are missing
  // (count and first names), a name is found in two places.
  static ImageIndex scan(const Manifest& manifest, const std::vector<std::uint32_t>& rows,
                         const std::vector<std::string>& folders);
  std::string to_text() const;
  static ImageIndex from_text(const std::string& text);

  const std::string& path(std::uint32_t row) const { return paths_[row]; }  // empty: not asked for

 private:
  std::vector<std::string> paths_;  // [row]
};

}  // namespace chexnet
