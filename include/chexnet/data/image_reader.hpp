// One sample from disk to the pixels the network sees: read, decode, resize, augment. The
// augmentation is a pure function of (seed, position). Any number of threads, each with its own
// Scratch.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/stream.hpp"
#include "chexnet/image/decode.hpp"
#include "chexnet/image/resize.hpp"

namespace chexnet {

// How images become input; stored in checkpoints and checked at inference.
struct Preprocessing {
  int resize = 256, crop = 224;  // pixels
  ResizeKind kind = ResizeKind::kAntialias;
  std::int64_t max_pixels = 64'000'000;
  bool scale_jpeg = true;  // decode a large JPEG at 1/2, 1/4 or 1/8 of its size
};
Preprocessing training_preprocessing(const DataConfig& config);
Preprocessing evaluation_preprocessing(const DataConfig& config);

struct Augmentation {
  bool random_crop = false, random_resized_crop = false, flip = false;
  double crop_area_min = 0.8, rotate_deg = 0, scale_jitter = 0, contrast_jitter = 0;
  static Augmentation none() { return {}; }
};
Augmentation augmentation_of(const DataConfig& config);

// ConfigError when a pack holds images made in another way than `preprocessing` asks for.
void check_packs(const ImageSource& source, const Preprocessing& preprocessing);
// ConfigError for random_resized_crop from a pack: it would cut other pixels than from the files.
void check_crops(const ImageSource& source, const Augmentation& augmentation);

class ImageReader {
 public:
  struct Scratch {
    FetchedImage fetched;
    GrayImage image;
    std::vector<std::uint8_t> resized, warped;
  };
  // `source` must outlive the reader. Throws as check_packs().
  ImageReader(const ImageSource& source, Preprocessing preprocessing, Augmentation augmentation,
              std::uint64_t seed);
  // Writes [crop, crop] pixels. DataError when the image is damaged; else as ImageSource::fetch().
  void read(const Sample& sample, std::uint8_t* into, Scratch& scratch,
            const std::stop_token& stop = {}) const;
  // The part of read() after the bytes have come.
  void decode(const Sample& sample, const FetchedImage& fetched, std::uint8_t* into,
              Scratch& scratch) const;
  int crop() const { return preprocessing_.crop; }
  const ImageSource& source() const { return source_; }

 private:
  void decode_within(const Sample& sample, const FetchedImage& fetched, std::uint8_t* into,
                     Scratch& scratch) const;

  const ImageSource& source_;
  Preprocessing preprocessing_;
  Augmentation augmentation_;
  std::uint64_t seed_;
};

}  // namespace chexnet
