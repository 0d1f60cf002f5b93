// Properties of every picture that our decoder accepts, whatever its format.
#pragma once

#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/picture_facts.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

inline constexpr DecodeLimits kSmall{.max_pixels = 1 << 17};

// Decodes `bytes`; accepted pictures have pixels within the limit, decode to
// the same again, and are resized in one pass as they are in two.
inline void check_picture(Bytes bytes) {
  static GrayImage image, scratch;
  if (!accepted<DataError>([&] { decode_image(bytes, kSmall, "x", image); })) {
    std::vector<uint8_t> small(9);
    require(!accepted<DataError>([&] {
      decode_resized(bytes, kSmall, "x", 3, ResizeKind::kAntialias, scratch,
                     small.data());
    }),
            "a picture is refused in whichever way it is read");
    return;
  }
  require(image.width() > 0 && image.height() > 0, "a picture has pixels");
  require(int64_t{image.width()} * image.height() <= kSmall.max_pixels,
          "a picture is within the limit");
  const PictureFacts facts = picture_facts(bytes, "x");
  require(int64_t{facts.width} * facts.height ==
              int64_t{image.width()} * image.height(),
          "its header has the size of its pixels");
  const auto pixels = image.contiguous();
  decode_image(bytes, kSmall, "x", scratch);
  require(scratch.contiguous() == pixels, "a picture decodes the same again");
  for (const int size : {7, 32})
    for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea}) {
      std::vector<uint8_t> at_once(static_cast<size_t>(size) *
                                   static_cast<size_t>(size)),
          in_two(at_once.size());
      decode_resized(bytes, kSmall, "x", size, kind, scratch, at_once.data());
      resize(image, {0, 0, image.width(), image.height()}, size, kind,
             in_two.data());
      require(at_once == in_two, "one pass gives the pixels of two");
    }
}

}  // namespace chexnet::fuzz
