#include "chexnet/data/decode.hpp"

#include <spng.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

[[noreturn]] void fail(const std::string& origin, const std::string& what,
                       const std::string& hint) {
  throw DataError("[decode] " + origin + ": " + what + ". Hint: " + hint);
}

void check_size(std::int64_t width, std::int64_t height, std::int64_t max_pixels,
                const std::string& origin) {
  if (width <= 0 || height <= 0) fail(origin, "has no pixels", "the file is damaged");
  if (width > max_pixels / height)
    fail(origin,
         "is " + std::to_string(width) + " x " + std::to_string(height) +
             " pixels, more than the limit of " + std::to_string(max_pixels),
         "raise data.max_pixels if the file is to be trusted");
}

// Pillow's L = (19595 R + 38470 G + 7471 B + 2^15) >> 16.
std::uint8_t luma(unsigned r, unsigned g, unsigned b) {
  return static_cast<std::uint8_t>((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16);
}

// Every chunk whole, with its CRC, up to IEND. libspng stops reading once it has the last row, so
// damage behind it, or a file cut there, would pass.
void check_png_chunks(std::span<const std::byte> bytes, const std::string& origin) {
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
    return value;
  };
  std::size_t at = 8;
  for (;;) {
    if (bytes.size() - at < 12)
      fail(origin, "damaged PNG: the file is cut off", "fetch the file again");
    const std::size_t length = u32(at);
    if (length > bytes.size() - at - 12)
      fail(origin, "damaged PNG: the file is cut off", "fetch the file again");
    const auto* body = reinterpret_cast<const Bytef*>(&bytes[at + 4]);
    if (crc32(0, body, static_cast<uInt>(length + 4)) != u32(at + 8 + length))
      fail(origin, "damaged PNG: a chunk's CRC is wrong", "fetch the file again");
    if (std::memcmp(body, "IEND", 4) == 0) return;
    at += length + 12;
  }
}

void decode_png(std::span<const std::byte> bytes, std::int64_t max_pixels,
                const std::string& origin, GrayImage& into) {
  check_png_chunks(bytes, origin);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> ctx(spng_ctx_new(0), spng_ctx_free);
  const auto check = [&](int rc) {
    if (rc != 0)
      fail(origin, std::string("damaged PNG: ") + spng_strerror(rc), "fetch the file again");
  };
  check(spng_set_crc_action(ctx.get(), SPNG_CRC_USE, SPNG_CRC_USE));  // checked above
  check(spng_set_png_buffer(ctx.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(ctx.get(), &header));
  check_size(header.width, header.height, max_pixels, origin);
  into.width = static_cast<int>(header.width);
  into.height = static_cast<int>(header.height);
  const std::size_t count = std::size_t{header.width} * header.height;
  into.pixels.resize(count);
  const bool gray = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE;
  if (gray && header.bit_depth <= 8) {
    check(spng_decode_image(ctx.get(), into.pixels.data(), count, SPNG_FMT_G8, 0));
    return;
  }
  const int format = gray ? SPNG_FMT_PNG : SPNG_FMT_RGBA8;
  thread_local std::vector<std::uint8_t> scratch;
  std::size_t size = 0;
  check(spng_decoded_image_size(ctx.get(), format, &size));
  scratch.resize(size);
  if (gray) {  // 16 bits, host byte order
    check(spng_decode_image(ctx.get(), scratch.data(), size, SPNG_FMT_PNG, 0));
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, &scratch[2 * i], 2);
      into.pixels[i] = static_cast<std::uint8_t>((value + 128) / 257);
    }
    return;
  }
  check(spng_decode_image(ctx.get(), scratch.data(), size, SPNG_FMT_RGBA8, 0));
  for (std::size_t i = 0; i < count; ++i)
    into.pixels[i] = luma(scratch[4 * i], scratch[4 * i + 1], scratch[4 * i + 2]);
}

// The orientation tag (1..8) of the first EXIF block; 1 when there is none or it is damaged.
int exif_orientation(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0u;
  };
  std::size_t p = 2;
  while (p + 4 <= bytes.size() && at(p) == 0xFF) {
    const unsigned marker = at(p + 1);
    const std::size_t length = at(p + 2) << 8 | at(p + 3);
    if (marker == 0xDA || length < 2) break;
    const std::size_t body = p + 4;
    if (marker == 0xE1 && length >= 16 &&
        std::memcmp(&bytes[body], "Exif\0", 6 < bytes.size() - body ? 6 : 0) == 0) {
      const std::size_t tiff = body + 6;
      const bool little = at(tiff) == 'I';
      const auto u16 = [&](std::size_t i) {
        return little ? at(i) | at(i + 1) << 8 : at(i) << 8 | at(i + 1);
      };
      const auto u32 = [&](std::size_t i) {
        return little ? u16(i) | u16(i + 2) << 16 : u16(i) << 16 | u16(i + 2);
      };
      const std::size_t directory = tiff + u32(tiff + 4);
      const unsigned entries = u16(directory);
      for (unsigned e = 0; e < entries; ++e) {
        const std::size_t entry = directory + 2 + std::size_t{12} * e;
        if (entry + 12 > bytes.size()) break;
        if (u16(entry) != 0x0112) continue;
        const unsigned value = u16(entry + 8);
        return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
      }
      return 1;
    }
    p += 2 + length;
  }
  return 1;
}

// Turns the stored picture upright, by the EXIF 2.3 table of orientations.
void apply_orientation(int orientation, GrayImage& image) {
  if (orientation == 1) return;
  const int w = image.width, h = image.height;
  const bool swap = orientation >= 5;
  std::vector<std::uint8_t> out(image.pixels.size());
  const int out_w = swap ? h : w, out_h = swap ? w : h;
  for (int y = 0; y < out_h; ++y) {
    for (int x = 0; x < out_w; ++x) {
      int sx = swap ? y : x, sy = swap ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        sx = w - 1 - sx;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        sy = h - 1 - sy;
      out[static_cast<std::size_t>(y) * static_cast<std::size_t>(out_w) +
          static_cast<std::size_t>(x)] =
          image.pixels[static_cast<std::size_t>(sy) * static_cast<std::size_t>(w) +
                       static_cast<std::size_t>(sx)];
    }
  }
  image.pixels = std::move(out);
  image.width = out_w;
  image.height = out_h;
}

void decode_jpeg(std::span<const std::byte> bytes, std::int64_t max_pixels,
                 const std::string& origin, GrayImage& into) {
  struct Closer {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  thread_local const std::unique_ptr<void, Closer> handle(tjInitDecompress());
  const auto check = [&](int rc) {
    if (rc != 0)
      fail(origin, std::string("damaged JPEG: ") + tjGetErrorStr2(handle.get()),
           "fetch the file again");
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<unsigned long>(bytes.size());
  int width = 0, height = 0, subsampling = 0, colors = 0;
  check(tjDecompressHeader3(handle.get(), data, size, &width, &height, &subsampling, &colors));
  check_size(width, height, max_pixels, origin);
  into.width = width;
  into.height = height;
  const std::size_t count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  into.pixels.resize(count);
  // A warning means missing or damaged data: half a picture is an error here.
  const int flags = TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT;
  if (colors == TJCS_GRAY || colors == TJCS_YCbCr) {  // Y is the luma
    check(tjDecompress2(handle.get(), data, size, into.pixels.data(), width, 0, height, TJPF_GRAY,
                        flags));
  } else {
    const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
    thread_local std::vector<std::uint8_t> scratch;
    scratch.resize(count * 4);
    check(tjDecompress2(handle.get(), data, size, scratch.data(), width, 0, height,
                        cmyk ? TJPF_CMYK : TJPF_RGBX, flags));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* p = &scratch[4 * i];
      // Adobe stores CMYK inverted: 255 is no ink.
      into.pixels[i] = cmyk ? luma(p[0] * p[3] / 255u, p[1] * p[3] / 255u, p[2] * p[3] / 255u)
                            : luma(p[0], p[1], p[2]);
    }
  }
  apply_orientation(exif_orientation(bytes), into);
}

}  // namespace

void decode_image(std::span<const std::byte> bytes, std::int64_t max_pixels,
                  const std::string& origin, GrayImage& into) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, max_pixels, origin, into);
  if (text.starts_with("\xFF\xD8\xFF")) return decode_jpeg(bytes, max_pixels, origin, into);
  if (text.empty()) fail(origin, "the file is empty", "fetch it again");
  if (text.size() > 132 && text.substr(128, 4) == "DICM")
    fail(origin, "is DICOM, which is not read here", "convert it to 8-bit gray PNG first");
  if (text.size() > 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP")
    fail(origin, "WebP is not supported", "convert it to PNG");
  fail(origin, "is neither PNG nor JPEG by its first bytes", "is it a download error page?");
}

}  // namespace chexnet
