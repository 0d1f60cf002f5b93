#include "chexnet/data/image_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/image/crop.hpp"

namespace chexnet {
namespace {

// Rotation and zoom around the center in one resampling; the border is repeated, as black wedges
// would be a cue.
void rotate_and_zoom(std::vector<std::uint8_t>& pixels, std::vector<std::uint8_t>& scratch,
                     int size, double degrees, double zoom) {
  scratch.resize(pixels.size());
  const cv::Mat from(size, size, CV_8UC1, pixels.data());
  cv::Mat to(size, size, CV_8UC1, scratch.data());
  const auto center = static_cast<float>(size - 1) / 2;
  cv::warpAffine(from, to, cv::getRotationMatrix2D({center, center}, degrees, zoom), to.size(),
                 cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  pixels.swap(scratch);
}

void change_contrast(std::uint8_t* pixels, std::size_t count, double factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += pixels[i];
  const double mean = static_cast<double>(sum) / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i)
    pixels[i] = static_cast<std::uint8_t>(
        std::clamp(std::lround(mean + factor * (pixels[i] - mean)), 0L, 255L));
}

}  // namespace

Preprocessing training_preprocessing(const DataConfig& config) {
  return {static_cast<int>(config.resize), static_cast<int>(config.crop), config.resize_kind,
          config.max_pixels, config.jpeg_scale == JpegScale::kAuto};
}

Preprocessing evaluation_preprocessing(const DataConfig& config) {
  Preprocessing preprocessing = training_preprocessing(config);
  if (config.eval_resize > 0) preprocessing.resize = static_cast<int>(config.eval_resize);
  return preprocessing;
}

Augmentation augmentation_of(const DataConfig& config) {
  return {config.random_crop,    config.random_resized_crop, config.flip,
          config.crop_area_min,  config.rotate_deg,          config.scale_jitter,
          config.contrast_jitter};
}

void check_packs(const ImageSource& source, const Preprocessing& wanted) {
  for (const PackReader* pack : source.packs()) {
    const PackShape& shape = pack->shape();
    if (shape.scaled_jpeg != wanted.scale_jpeg)
      throw ConfigError(std::string("[pack] the pack's JPEGs were decoded with data.jpeg_scale ") +
                        choice_name(shape.scaled_jpeg ? JpegScale::kAuto : JpegScale::kOff) +
                        ", the run asks for another. Hint: set it to the pack's, or pack again");
    if (shape.side == wanted.resize && shape.kind == wanted.kind) continue;
    throw ConfigError("[pack] the pack holds images of " + std::to_string(shape.side) +
                      " pixels (" + choice_name(shape.kind) + "), the run asks for " +
                      std::to_string(wanted.resize) + " (" + choice_name(wanted.kind) +
                      "). Hint: set data.resize, data.eval_resize and data.resize_kind to the "
                      "pack's, or pack again");
  }
}

void check_crops(const ImageSource& source, const Augmentation& augmentation) {
  if (!augmentation.random_resized_crop || source.packs().empty()) return;
  throw ConfigError(
      "[pack] data.random_resized_crop cuts from the original picture, a pack holds resized ones: "
      "the pixels would be others than from the files. Hint: data.random_crop, or name the files, "
      "archives or records in data.images");
}

ImageReader::ImageReader(const ImageSource& source, Preprocessing preprocessing,
                         Augmentation augmentation, std::uint64_t seed)
    : source_(source), preprocessing_(preprocessing), augmentation_(augmentation), seed_(seed) {
  cv::setNumThreads(0);  // the loader's workers are the parallelizm
  check_packs(source, preprocessing);
  check_crops(source, augmentation);
}

void ImageReader::read(const Sample& sample, std::uint8_t* into, Scratch& scratch,
                       const std::stop_token& stop) const {
  source_.fetch(sample.row, scratch.fetched, stop);
  decode(sample, scratch.fetched, into, scratch);
}

void ImageReader::decode(const Sample& sample, const FetchedImage& fetched, std::uint8_t* into,
                         Scratch& scratch) const {
  within_memory(fetched.origin, [&] { decode_within(sample, fetched, into, scratch); });
}

void ImageReader::decode_within(const Sample& sample, const FetchedImage& fetched,
                                std::uint8_t* into, Scratch& scratch) const {
  // Draws happen in a fixed order whatever is switched on, so switching one off leaves the others
  // as they were.
  Random random(seed_, Purpose::kAugment, sample.position);
  const double area = random.uniform(augmentation_.crop_area_min, 1.0);
  const double at_x = random.uniform(), at_y = random.uniform();
  const bool flip = random.chance(0.5) && augmentation_.flip;
  const double degrees = augmentation_.rotate_deg * random.uniform(-1, 1);
  const double zoom = 1 + augmentation_.scale_jitter * random.uniform(-1, 1);
  const double contrast = 1 + augmentation_.contrast_jitter * random.uniform(-1, 1);

  const int crop = preprocessing_.crop;
  const int size = augmentation_.random_resized_crop ? crop : preprocessing_.resize;
  const auto side = static_cast<std::size_t>(size);
  const bool warp = degrees != 0 || zoom != 1;
  const std::uint8_t* square = nullptr;  // [size, size]
  if (fetched.side == size && !augmentation_.random_resized_crop && !warp) {
    square = reinterpret_cast<const std::uint8_t*>(fetched.bytes.data());
  } else {
    const double share = augmentation_.random_resized_crop ? std::sqrt(area) : 1.0;  // of a side
    const int min_side = preprocessing_.scale_jpeg ? static_cast<int>(std::ceil(size / share)) : 0;
    const DecodeLimits limits{preprocessing_.max_pixels, min_side};
    GrayImage& image = scratch.image;
    scratch.resized.resize(side * side);
    if (fetched.side == 0 && !augmentation_.random_resized_crop) {
      decode_resized(fetched.bytes, limits, fetched.origin, size, preprocessing_.kind, image,
                     scratch.resized.data());
    } else {
      decode_fetched(fetched, limits, image);
      Region region{0, 0, image.width(), image.height()};
      if (augmentation_.random_resized_crop) {
        region.width = std::max(1, static_cast<int>(std::lround(share * image.width())));
        region.height = std::max(1, static_cast<int>(std::lround(share * image.height())));
        region.x = static_cast<int>(at_x * (image.width() - region.width + 1));
        region.y = static_cast<int>(at_y * (image.height() - region.height + 1));
      }
      resize(image, region, size, preprocessing_.kind, scratch.resized.data());
    }
    if (warp) rotate_and_zoom(scratch.resized, scratch.warped, size, degrees, zoom);
    square = scratch.resized.data();
  }

  const int slack = size - crop;
  int x0 = center_crop_begin(size, crop), y0 = x0;
  if (augmentation_.random_crop) {
    x0 = static_cast<int>(at_x * (slack + 1));
    y0 = static_cast<int>(at_y * (slack + 1));
  }
  const auto width = static_cast<std::size_t>(crop);
  const std::uint8_t* corner =
      square + static_cast<std::size_t>(y0) * side + static_cast<std::size_t>(x0);
  (flip ? copy_crop_flipped : copy_crop)(corner, side, width, width, into);
  if (contrast != 1) change_contrast(into, width * width, contrast);
}

}  // namespace chexnet
