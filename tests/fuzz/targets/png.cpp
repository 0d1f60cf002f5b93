// Hostile PNG files.
#include "chexnet/data/image/encode.hpp"
#include "fuzz/image_checks.hpp"
#include "support/png_parts.hpp"

namespace chexnet::fuzz {
namespace {

std::string file_of(uint8_t depth, uint8_t color, size_t row_bytes) {
  auto file = png_head(5, 4, depth, color);
  if (color == 3) {
    const std::vector<uint8_t> palette(12, 90);
    put_chunk(file, "PLTE", palette);
  }
  std::vector<uint8_t> lines;
  for (uint8_t y = 0; y < 4; ++y) {
    lines.push_back(y);
    for (size_t x = 0; x < row_bytes; ++x)
      lines.push_back(static_cast<uint8_t>(x * 37 + y));
  }
  const auto packed = deflated(lines);
  put_chunk(file, "IDAT", std::span(packed).first(7));
  put_chunk(file, "IDAT", std::span(packed).subspan(7));
  put_chunk(file, "tEXt", {});
  put_chunk(file, "IEND", {});
  return text_of(file);
}

std::vector<std::string> seeds() {
  std::vector<uint8_t> pixels(40 * 30);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(i * 7 + i / 40);
  return {text_of(encode_gray_png(pixels.data(), 40, 30)),
          text_of(encode_rgb_png(pixels.data(), 20, 20)),
          file_of(8, 0, 5),
          file_of(16, 0, 10),
          file_of(1, 0, 1),
          file_of(2, 3, 2),
          file_of(8, 2, 15),
          file_of(8, 4, 10),
          file_of(16, 6, 40),
          std::string(128, '\0') + "DICM" + std::string(8, '\0'),
          "RIFF" + std::string(4, '\0') + "WEBPVP8 "};
}

const Registered kTarget{{"png", check_picture, mend_chunks, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
