#include "chexnet/data/image/picture_facts.hpp"

#include <algorithm>

#include "formats.hpp"

namespace chexnet {

bool shows_color(std::span<const uint8_t> pixels) {
  // Between the channels of a pixel; JPEG changes gray by a few levels.
  constexpr int kVisible = 16;
  // A colored mark on a gray picture is smaller than this.
  constexpr size_t kMarkOf = 100;
  size_t colored = 0;
  for (size_t at = 0; at + 4 <= pixels.size(); at += 4) {
    const auto [low, high] =
        std::minmax({pixels[at], pixels[at + 1], pixels[at + 2]});
    colored += high - low > kVisible ? 1 : 0;
  }
  return colored * kMarkOf > pixels.size() / 4;
}

PictureFacts picture_facts(std::span<const std::byte> bytes,
                           const std::string& origin) {
  if (!bytes.empty() && bytes[0] == std::byte{0x89})
    return facts_of_png(bytes, origin);
  return facts_of_jpeg(bytes);
}

}  // namespace chexnet
