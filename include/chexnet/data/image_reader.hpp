// One sample from disk to the pixels the network sees: read, decode, resize,
// augment (augment.hpp). Any number of threads, each with its Scratch.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/augment.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/resize.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/stream.hpp"

namespace chexnet {

// How images become input; stored in checkpoints and checked at inference.
struct Preprocessing {
  int resize = 256, crop = 224;  // pixels
  ResizeKind kind = ResizeKind::kAntialias;
  bool scale_jpeg = true;  // decode a large JPEG at 1/2, 1/4 or 1/8 of its size
};
Preprocessing training_preprocessing(const DataConfig& config);
Preprocessing evaluation_preprocessing(const DataConfig& config);

Augmentation augmentation_of(const DataConfig& config);

// ConfigError when a pack holds images made in another way than `preprocessing`
// asks for.
void check_packs(const ImageSource& source, const Preprocessing& preprocessing);
// ConfigError for data.train_crop=resized from a pack: it would cut other
// pixels than from the files.
void check_crops(const ImageSource& source, const Augmentation& augmentation);

class ImageReader {
 public:
  // Memory that a thread keeps from image to image: whoever starts threads owns
  // one for each.
  //
  // The state of a codec or a connection (inflate states, TurboJPEG's handle,
  // resize tables, curl's connection) is thread_local in the .cpp that uses it
  // instead: its type belongs to a library or to one file format, no caller
  // could size, share or reset it, and as an argument it would go through every
  // signature between here and there.
  struct Scratch {
    FetchedImage fetched;
    GrayImage image;
    std::vector<uint8_t> resized, warped;
  };
  // `source` must outlive the reader. Throws as check_packs().
  ImageReader(const ImageSource& source, Preprocessing preprocessing,
              Augmentation augmentation, uint64_t seed);
  // Writes [crop, crop] pixels. DataError when the image is damaged; else as
  // ImageSource::fetch().
  void read(const Sample& sample, uint8_t* into, Scratch& scratch,
            const std::stop_token& stop = {}) const;
  // The part of read() after the bytes have come; they are of this reader's
  // source.
  void decode(const Sample& sample, const FetchedImage& fetched, uint8_t* into,
              Scratch& scratch) const;
  int crop() const { return preprocessing_.crop; }
  bool augments() const { return augmentation_ != Augmentation::none(); }
  const ImageSource& source() const { return source_; }

 private:
  void decode_within_memory(const Sample& sample, const FetchedImage& fetched,
                            uint8_t* into, Scratch& scratch) const;
  Square resized(const FetchedImage& fetched, const DrawnAugmentation& drawn,
                 Scratch& scratch) const;
  DecodeLimits limits(const DrawnAugmentation& drawn) const;

  const ImageSource& source_;
  Preprocessing preprocessing_;
  Augmentation augmentation_;
  uint64_t seed_;
};

}  // namespace chexnet
