// A phantom set on disk, for tests that read images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/phantom.hpp"

namespace chexnet {

// Draws `images` pictures of `side` pixels into `out`/images and returns the
// manifest beside them.
inline Manifest draw_phantom_set(const std::filesystem::path& out, int images,
                                 int side) {
  PhantomOptions options;
  options.out = out;
  options.images = images;
  options.size = side;
  options.threads = 2;
  write_phantom_set(options, [](int) {});
  DataConfig config;
  config.manifest.path = {(out / "Data_Entry_2017.csv").string()};
  return read_manifest(config);
}

inline std::vector<uint32_t> all_rows(const Manifest& manifest) {
  std::vector<uint32_t> rows(manifest.size());
  std::iota(rows.begin(), rows.end(), uint32_t{0});
  return rows;
}

}  // namespace chexnet
