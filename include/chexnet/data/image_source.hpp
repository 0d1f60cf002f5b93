// The stored form of an image by its row, from whatever container holds it,
// checksums verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image_index.hpp"
#include "chexnet/data/pack.hpp"
#include "chexnet/data/storage/stores.hpp"

namespace chexnet {

// The result of fetch(): a file's bytes, or a pack's pixels. Memory is kept
// from image to image; the views last until the next fetch() with this object,
// and no longer than the source.
struct FetchedImage {
  std::span<const std::byte> bytes;  // of a PNG or JPEG, or of pixels
  // Of pixels [side, side], gray, resized as the pack says; 0 = a PNG or JPEG.
  int side = 0;
  std::string origin;  // for messages: path, and record or member
  std::vector<std::byte> memory, compressed;

  bool holds_pixels() const { return side > 0; }
  const uint8_t* pixels() const;  // holds_pixels()
};

// Its picture, decoded or (of a pack) as it is. DataError as decode_image().
void decode_fetched(const FetchedImage& fetched, const DecodeLimits& limits,
                    GrayImage& into);

class ImageSource {
 public:
  // `stores` must outlive the source. Opens packs.
  ImageSource(ImageIndex index, Stores& stores);

  // DataError: damaged (a wrong checksum, no file, more than memory holds).
  // AbsentError, OutageError as Store; after `stop` it waits for nothing. Any
  // number of threads.
  void fetch(uint32_t row, FetchedImage& into,
             const std::stop_token& stop = {}) const;
  const ImageIndex& index() const { return index_; }
  // The packs among the containers, for code that must know their size and
  // resize.
  std::vector<const PackReader*> packs() const;
  // Requests worth having in flight for this source: more than 0 where each
  // read waits on a network.
  int wanted_readers() const;
  bool reads_over_network() const;  // of some of its images at least

 private:
  ImageIndex index_;
  Stores& stores_;
  void fetch_from(const Container& container, const ImageLocation& location,
                  FetchedImage& into, const ReadOptions& options) const;

  // [container]; null for other kinds
  std::vector<std::unique_ptr<PackReader>> packs_;
};

// Stores as the config says.
std::unique_ptr<Stores> open_stores(const DataConfig& config);
S3Options s3_options(const S3Config& config);

}  // namespace chexnet
