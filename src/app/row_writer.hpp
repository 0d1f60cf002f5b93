// predict's rows on their way out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/output_file.hpp"
#include "chexnet/train/run/input_set.hpp"
#include "image_scores.hpp"

namespace chexnet {

// Bytes of the longest name as it is shown.
size_t widest_name(const std::vector<InputImage>& images);

struct RowPlaces {
  std::string csv;    // a file; empty: none
  bool json = false;  // JSON lines on stdout; without both, text
};

// Rows as they come, in the order of naming: images that were not found are
// among the scored ones. The file appears whole, by finish(). Rank 0.
class RowWriter {
 public:
  // `set` outlives it.
  RowWriter(const InputSet& set, ImageScoreRows rows, const RowPlaces& places);
  // Of the next image that could be read; its name is filled in here.
  void take(ImageScore score);
  ImageScoresSummary finish(double seconds);

 private:
  void write_absent();
  void write(const ImageScore& image);

  const InputSet& set_;
  ImageScoreRows rows_;
  bool json_, text_;
  std::optional<OutputFile> csv_;
  size_t next_ = 0;  // of set_.images
  ImageScoresSummary summary_;
};

}  // namespace chexnet
