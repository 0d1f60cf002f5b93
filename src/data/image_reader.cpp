// Fetch, decode and resize in one pass, augment. A pack saves the first two:
// its pixels are used where they lie.
#include "chexnet/data/image_reader.hpp"

#include <cassert>
#include <cmath>
#include <opencv2/core.hpp>

#include "chexnet/core/error.hpp"

namespace chexnet {
Preprocessing training_preprocessing(const DataConfig& config) {
  return {static_cast<int>(config.resize), static_cast<int>(config.crop),
          config.resize_kind, config.jpeg_scale == JpegScale::kAuto};
}

Preprocessing evaluation_preprocessing(const DataConfig& config) {
  Preprocessing preprocessing = training_preprocessing(config);
  if (config.eval_resize > 0)
    preprocessing.resize = static_cast<int>(config.eval_resize);
  return preprocessing;
}

Augmentation augmentation_of(const DataConfig& config) {
  return {config.train_crop, config.flip, config.crop_area_min,
          config.rotate_deg, config.zoom, config.contrast};
}

void check_packs(const ImageSource& source, const Preprocessing& wanted) {
  for (const PackReader* pack : source.packs()) {
    const PackShape& shape = pack->shape();
    if (shape.scaled_jpeg != wanted.scale_jpeg)
      throw ConfigError(
          "[pack] the pack's JPEGs were decoded with data.jpeg_scale {}, the "
          "run asks for another. Hint: set it to the pack's, or pack again",
          choice_name(shape.scaled_jpeg ? JpegScale::kAuto : JpegScale::kOff));
    if (shape.side == wanted.resize && shape.kind == wanted.kind) continue;
    throw ConfigError(
        "[pack] the pack holds images of {} pixels ({}), the run asks for {} "
        "({}). Hint: set data.resize, data.eval_resize and data.resize_kind to "
        "the pack's, or pack again",
        shape.side, choice_name(shape.kind), wanted.resize,
        choice_name(wanted.kind));
  }
}

void check_crops(const ImageSource& source, const Augmentation& augmentation) {
  if (augmentation.crop != TrainCrop::kResized || source.packs().empty())
    return;
  throw ConfigError(
      "[pack] data.train_crop=resized cuts from the original picture, a pack "
      "holds resized ones: "
      "the pixels would be others than from the files. Hint: "
      "data.train_crop=random, "
      "or name the files, "
      "archives or records in data.images");
}

ImageReader::ImageReader(const ImageSource& source, Preprocessing preprocessing,
                         Augmentation augmentation, uint64_t seed)
    : source_(source),
      preprocessing_(preprocessing),
      augmentation_(augmentation),
      seed_(seed) {
  cv::setNumThreads(0);  // the loader's workers are the parallelism
  check_packs(source, preprocessing);
  check_crops(source, augmentation);
}

void ImageReader::read(const Sample& sample, uint8_t* into, Scratch& scratch,
                       const std::stop_token& stop) const {
  source_.fetch(sample.row, scratch.fetched, stop);
  decode(sample, scratch.fetched, into, scratch);
}

void ImageReader::decode(const Sample& sample, const FetchedImage& fetched,
                         uint8_t* into, Scratch& scratch) const {
  within_memory(fetched.origin,
                [&] { decode_within_memory(sample, fetched, into, scratch); });
}

void ImageReader::decode_within_memory(const Sample& sample,
                                       const FetchedImage& fetched,
                                       uint8_t* into, Scratch& scratch) const {
  const DrawnAugmentation drawn =
      draw_augmentation(augmentation_, seed_, sample.position);
  const Square square = resized(fetched, drawn, scratch);
  augment(square, drawn, preprocessing_.crop, into, scratch.warped);
}

// The picture at the size that crops are cut from. A pack holds it ready; of a
// random resized crop it is the crop itself.
Square ImageReader::resized(const FetchedImage& fetched,
                            const DrawnAugmentation& drawn,
                            Scratch& scratch) const {
  if (fetched.holds_pixels()) {
    assert(fetched.side == preprocessing_.resize);  // check_packs()
    assert(drawn.crop != TrainCrop::kResized);      // check_crops()
    return {fetched.pixels(), fetched.side};
  }
  const bool crops_original = drawn.crop == TrainCrop::kResized;
  const int size = crops_original ? preprocessing_.crop : preprocessing_.resize;
  const auto side = static_cast<size_t>(size);
  scratch.resized.resize(side * side);
  uint8_t* into = scratch.resized.data();

  GrayImage& image = scratch.image;
  if (crops_original) {
    decode_fetched(fetched, limits(drawn), image);
    const Region region = drawn_region(drawn, image.width(), image.height());
    resize(image, region, size, preprocessing_.kind, into);
  } else {
    decode_resized(fetched.bytes, limits(drawn), fetched.origin, size,
                   preprocessing_.kind, image, into);
  }
  return {into, size};
}

// A JPEG may be decoded at a fraction of its size as long as nothing is
// enlarged afterwards.
DecodeLimits ImageReader::limits(const DrawnAugmentation& drawn) const {
  if (!preprocessing_.scale_jpeg) return {};
  if (drawn.crop != TrainCrop::kResized)
    return {.min_side = preprocessing_.resize};
  const double fraction = std::sqrt(drawn.area);  // of a side
  const int side = static_cast<int>(std::ceil(preprocessing_.crop / fraction));
  return {.min_side = side};
}

}  // namespace chexnet
