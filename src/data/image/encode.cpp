#include "chexnet/data/image/encode.hpp"

#include <spng.h>

#include <cassert>
#include <cstdlib>
#include <memory>
#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// The library hands out a buffer of malloc(), whose size is known only after
// the last row.
std::vector<std::byte> encode_png(const uint8_t* pixels, int width, int height,
                                  spng_color_type type) {
  assert(width > 0 && height > 0);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> ctx(
      spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  spng_set_option(ctx.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(width);
  header.height = static_cast<uint32_t>(height);
  header.bit_depth = 8;
  header.color_type = static_cast<uint8_t>(type);
  spng_set_ihdr(ctx.get(), &header);
  int rc = spng_encode_image(ctx.get(), pixels,
                             static_cast<size_t>(width) *
                                 static_cast<size_t>(height) *
                                 (type == SPNG_COLOR_TYPE_TRUECOLOR ? 3 : 1),
                             SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  void* buffer = rc == 0 ? spng_get_png_buffer(ctx.get(), &size, &rc) : nullptr;
  if (buffer == nullptr)
    throw DataError("[encode] PNG: {}. Hint: out of memory?",
                    spng_strerror(rc));
  const auto* bytes = static_cast<const std::byte*>(buffer);
  std::vector<std::byte> out(bytes, bytes + size);
  std::free(buffer);
  return out;
}

}  // namespace

std::vector<std::byte> encode_gray_png(const uint8_t* pixels, int width,
                                       int height) {
  return encode_png(pixels, width, height, SPNG_COLOR_TYPE_GRAYSCALE);
}

std::vector<std::byte> encode_rgb_png(const uint8_t* pixels, int width,
                                      int height) {
  return encode_png(pixels, width, height, SPNG_COLOR_TYPE_TRUECOLOR);
}

}  // namespace chexnet
