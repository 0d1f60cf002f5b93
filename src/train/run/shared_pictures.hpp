// The same file in two splits under two names: a split by patients cannot tell
// when a picture has two ids. Used at the start of training, so it reads
// little; `inspect` compares the pixels of all images.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "chexnet/train/run/dataset.hpp"

namespace chexnet {

struct SharedPictures {
  size_t count = 0;       // validation and test images that are elsewhere, too
  std::string example{};  // "a.png (train) = b.png (test)"
  // Images of a length that another split has, too, and those of them that were
  // compared.
  size_t alike = 0, compared = 0;
  // Of which nothing is known without reading all of it: TFRecords, and members
  // of tar archives in object stores.
  size_t unknown = 0;
};

// Local files and members of tar archives are the same where length and last 4
// KiB agree (a PNG's end holds the checksum of its pixels); compared with parts
// of a tar.gz or a pack, where length and a checksum of all bytes agree;
// objects where their ETags agree. Reads at most `most` ends; what cannot be
// read is left to training.
SharedPictures find_shared_pictures(
    const Dataset& dataset, int threads, size_t most,
    const std::function<void()>& tick = [] {});

// Logs what was found.
void warn_of_shared_pictures(const SharedPictures& found);

}  // namespace chexnet
