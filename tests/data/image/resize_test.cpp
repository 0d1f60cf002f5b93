#include "chexnet/data/image/resize.hpp"

#include <cmath>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

GrayImage pattern(int width, int height) {
  GrayImage image;
  image.reset(width, height);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      image.row(static_cast<int>(y))[x] = static_cast<uint8_t>(
          (x * x * 3 + y * 7 + x * y + (x * y * y) / 5) % 256);
  return image;
}

}  // namespace

// SHA-256 of the result of torch 2.11.0's interpolate(uint8, mode="bilinear",
// antialias=True) for the same pattern.
TEST_CASE("antialias equals PyTorch's uint8 kernel bit for bit") {
  struct Case {
    int width, height, size;
    const char* sha256;
  };
  const std::vector<Case> cases = {{37, 29, 16, "41b689fa928fc4ae"},
                                   {352, 352, 64, "fad927a50c4ce20a"},
                                   {352, 352, 72, "ee3af927c666c3f1"},
                                   {64, 48, 100, "4ba3949c11d4da06"},
                                   {1024, 900, 224, "8c859abf4a96a373"},
                                   {5, 3, 8, "2577e8c5bb0ee1a2"},
                                   {64, 200, 64, "18d848474c9bf65e"},
                                   {1024, 1024, 256, "41457c880dd6e301"},
                                   {256, 256, 64, "deca355364dfd632"},
                                   {1024, 600, 256, "922757ad534f2139"},
                                   {2048, 2048, 256, "5086ed35961102d3"}};
  for (const auto& c : cases) {
    std::vector<uint8_t> out(static_cast<size_t>(c.size) *
                             static_cast<size_t>(c.size));
    resize(pattern(c.width, c.height), {0, 0, c.width, c.height}, c.size,
           ResizeKind::kAntialias, out.data());
    Sha256 sum;
    sum.update(std::as_bytes(std::span(out)));
    INFO(c.width << " x " << c.height << " -> " << c.size);
    CHECK(sum.hex().substr(0, 16) == c.sha256);
  }
}

TEST_CASE("area is the exact mean of the box a pixel covers") {
  for (const auto& [width, height, size] : {std::tuple{40, 40, 10},
                                            {37, 29, 11},
                                            {7, 5, 12},
                                            {300, 17, 16},
                                            {64, 48, 16}}) {
    const GrayImage image = pattern(width, height);
    std::vector<uint8_t> out(static_cast<size_t>(size) *
                             static_cast<size_t>(size));
    resize(image, {0, 0, width, height}, size, ResizeKind::kArea, out.data());
    for (int oy = 0; oy < size; ++oy) {
      for (int ox = 0; ox < size; ++ox) {
        long double sum = 0;
        for (int y = 0; y < height; ++y) {
          const long double wy = std::max(
              0.0L, std::min<long double>(y + 1, (oy + 1.0L) * height / size) -
                        std::max<long double>(
                            y, static_cast<long double>(oy) * height / size));
          for (int x = 0; x < width && wy > 0; ++x) {
            const long double wx = std::max(
                0.0L, std::min<long double>(x + 1, (ox + 1.0L) * width / size) -
                          std::max<long double>(
                              x, static_cast<long double>(ox) * width / size));
            sum += wx * wy * image.row(y)[x];
          }
        }
        const long double exact =
            sum * size * size / (static_cast<long double>(width) * height);
        REQUIRE(std::abs(static_cast<double>(
                    exact - out[static_cast<size_t>(oy * size + ox)])) <=
                0.5 + 1e-9);
      }
    }
  }
}

TEST_CASE("a region is resized as if it were an image of its own") {
  const GrayImage image = pattern(50, 40);
  GrayImage part;
  part.reset(20, 15);
  for (int y = 0; y < 15; ++y)
    for (int x = 0; x < 20; ++x) part.row(y)[x] = image.row(y + 7)[x + 11];
  for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea}) {
    std::vector<uint8_t> a(64), b(64);
    resize(image, {11, 7, 20, 15}, 8, kind, a.data());
    resize(part, {0, 0, 20, 15}, 8, kind, b.data());
    CHECK(a == b);
  }
}
