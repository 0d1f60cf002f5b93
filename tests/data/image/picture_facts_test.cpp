#include "chexnet/data/image/picture_facts.hpp"

#include <turbojpeg.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

// 64 x 48 pixels, each channel a part of the same gray.
std::vector<std::byte> jpeg_of(std::array<int, 3> percent) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < 48; ++y)
    for (int x = 0; x < 64; ++x)
      for (const int part : percent)
        pixels.push_back(static_cast<uint8_t>((x * 2 + y * 2) * part / 100));
  const std::unique_ptr<void, int (*)(void*)> codec(tjInitCompress(),
                                                    tjDestroy);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(codec.get(), pixels.data(), 64, 0, 48, TJPF_RGB, &memory,
                      &size, TJSAMP_420, 80, 0) == 0);
  const auto bytes = std::as_bytes(std::span(memory, size));
  std::vector<std::byte> jpeg(bytes.begin(), bytes.end());
  tjFree(memory);
  return jpeg;
}

}  // namespace

TEST_CASE("a tinted JPEG is in color, gray stored as RGB is not") {
  const PictureFacts gray = picture_facts(jpeg_of({100, 100, 100}), "x");
  CHECK((gray.width == 64 && gray.height == 48 && !gray.in_color));
  CHECK_FALSE(picture_facts(jpeg_of({100, 98, 96}), "x").in_color);
  CHECK(picture_facts(jpeg_of({60, 80, 100}), "x").in_color);
}
