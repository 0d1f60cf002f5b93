// The stored form of an image by its row, from whatever container holds it, checksums verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chexnet/data/image_index.hpp"
#include "chexnet/data/pack.hpp"
#include "chexnet/image/decode.hpp"
#include "chexnet/storage/stores.hpp"

namespace chexnet {

// What fetch() hands over. Memory is kept from image to image; the views last until the next
// fetch() with this object, and no longer than the source.
struct Fetched {
  std::span<const std::byte> bytes;  // of a PNG or JPEG; of pixels when side > 0
  int side = 0;                      // > 0: [side, side] gray pixels, resized as the pack says
  std::string origin;                // for messages: path, and record or member
  std::vector<std::byte> memory, packed;
};

// Its picture, decoded or (of a pack) as it is. DataError as decode_image().
void decode_fetched(const Fetched& fetched, const DecodeLimits& limits, GrayImage& into);

class ImageSource {
 public:
  // `stores` must outlive the source. Opens packs.
  ImageSource(ImageIndex index, Stores& stores);

  // DataError: unreadable, a checksum is wrong. Any number of threads.
  void fetch(std::uint32_t row, Fetched& into) const;
  const ImageIndex& index() const { return index_; }
  // The packs among the containers, for whoever must know their size and resize.
  std::vector<const PackReader*> packs() const;
  // Requests worth having in flight for this source: more than 0 where each read waits on a
  // network.
  int wanted_readers() const;

 private:
  ImageIndex index_;
  Stores& stores_;
  std::vector<std::unique_ptr<PackReader>> packs_;  // [container]; null for other kinds
};

S3Options s3_options(const DataConfig& config);

}  // namespace chexnet
