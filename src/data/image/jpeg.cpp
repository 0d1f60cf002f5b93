// JPEG by TurboJPEG, scaled in the DCT where that is enough; then plain gray
// files by the decoder of jpeg_scan.hpp. A file is markers, each with a length:
//
//   FFD8 | FFE1 length Exif … | FFDB … | FFC0 length frame | FFC4 …
//        | FFDA length scan | FFD9
//
// Before any pixel: the size that the frame claims is checked against the
// limits, and against the file's length, as Huffman coding needs a bit for each
// block at least. The EXIF block says how the picture is turned upright at the
// end.
#include <turbojpeg.h>

#include <cstring>
#include <memory>
#include <vector>

#include "formats.hpp"
#include "jpeg_scan.hpp"
#include "orientation.hpp"

namespace chexnet {
namespace {

// Whether a frame of Huffman-coded blocks (SOF0 to SOF2) begins within the
// file's markers.
bool huffman_coded(std::span<const std::byte> bytes) {
  const auto at = [&](size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  for (size_t p = 2; p + 4 <= bytes.size() && at(p) == 0xFF;) {
    const unsigned marker = at(p + 1);
    if (marker >= 0xC0 && marker <= 0xC2) return true;
    p += 2 + (at(p + 2) << 8 | at(p + 3));
  }
  return false;
}

// A Huffman code has at least one bit, and a component at least a block for
// every 4 x 4 blocks of 8 x 8 pixels (sampling factors end at 4).
constexpr int64_t kMostPixelsOfByte = int64_t{8} * 64 * 16;

// Of the first EXIF block; 1 when there is none.
int exif_orientation(std::span<const std::byte> bytes) {
  constexpr unsigned kApp1 = 0xE1, kScan = 0xDA;
  const auto at = [&](size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  for (size_t p = 2; p + 4 <= bytes.size() && at(p) == 0xFF;) {
    const unsigned marker = at(p + 1);
    const size_t length = at(p + 2) << 8 | at(p + 3);
    if (marker == kScan || length < 2) break;
    const size_t body = p + 4;
    const bool fits = length >= 16 && bytes.size() - body > 6;
    if (marker == kApp1 && fits &&
        std::memcmp(&bytes[body], "Exif\0", 6) == 0) {
      return orientation_of(bytes.subspan(body + 6));
    }
    p += 2 + length;
  }
  return 1;
}

// 1/2, 1/4 and 1/8 have SIMD code in libjpeg-turbo, the other eighths have not.
tjscalingfactor smallest_scale(int width, int height, int min_side) {
  tjscalingfactor best{1, 1};
  for (int denominator = 2; min_side > 0 && denominator <= 8;
       denominator *= 2) {
    const tjscalingfactor factor{1, denominator};
    if (TJSCALED(width, factor) < min_side ||
        TJSCALED(height, factor) < min_side)
      break;
    best = factor;
  }
  return best;
}

}  // namespace

void decode_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits,
                 const std::string& origin, GrayImage& into) {
  // One for each file: a decoder keeps the tables of the last, and a damaged
  // file without tables would be decoded with them.
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitDecompress(),
                                                     tjDestroy);
  const auto check = [&](int rc) {
    if (rc != 0)
      decode_failed(
          origin, std::string("damaged JPEG: ") + tjGetErrorStr2(handle.get()),
          "fetch the file again");
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<unsigned long>(bytes.size());
  int full_width = 0, full_height = 0, subsampling = 0, colors = 0;
  check(tjDecompressHeader3(handle.get(), data, size, &full_width, &full_height,
                            &subsampling, &colors));
  check_size(full_width, full_height, limits, origin);
  if (int64_t{full_width} * full_height >
          kMostPixelsOfByte * std::ssize(bytes) &&
      huffman_coded(bytes))
    decode_failed(origin, "damaged JPEG: the file is cut off",
                  "fetch the file again");
  const tjscalingfactor scale =
      smallest_scale(full_width, full_height, limits.min_side);
  if (colors == TJCS_GRAY && scale.denom > 1 &&
      decode_gray_jpeg(bytes, 8 / scale.denom, jpeg_scan_decoders().front(),
                       into))
    return turn_upright(exif_orientation(bytes), into);
  const int width = TJSCALED(full_width, scale),
            height = TJSCALED(full_height, scale);
  into.reset(width, height);
  // A warning means missing or damaged data: half a picture is an error here. A
  // progressive file may pass over all blocks in hundreds of scans of a few
  // bytes each; real ones have about ten.
  const int flags =
      TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (colors == TJCS_GRAY || colors == TJCS_YCbCr) {  // Y is the luma
    check(tjDecompress2(handle.get(), data, size, into.row(0), width,
                        static_cast<int>(into.stride()), height, TJPF_GRAY,
                        flags));
  } else {
    const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
    thread_local std::vector<uint8_t> scratch;  // four bytes a pixel
    scratch.resize(static_cast<size_t>(width) * static_cast<size_t>(height) *
                   4);
    check(tjDecompress2(handle.get(), data, size, scratch.data(), width, 0,
                        height, cmyk ? TJPF_CMYK : TJPF_RGBX, flags));
    const uint8_t* p = scratch.data();
    for (int y = 0; y < height; ++y) {
      uint8_t* row = into.row(y);
      for (int x = 0; x < width; ++x, p += 4)
        // Adobe stores CMYK inverted: 255 is no ink.
        row[x] = cmyk ? luma(p[0] * p[3] / 255u, p[1] * p[3] / 255u,
                             p[2] * p[3] / 255u)
                      : luma(p[0], p[1], p[2]);
    }
  }
  turn_upright(exif_orientation(bytes), into);
}

PictureFacts facts_of_jpeg(std::span<const std::byte> bytes) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitDecompress(),
                                                     tjDestroy);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<unsigned long>(bytes.size());
  PictureFacts facts;
  int subsampling = 0, colors = 0;
  if (tjDecompressHeader3(handle.get(), data, size, &facts.width, &facts.height,
                          &subsampling, &colors) != 0 ||
      colors == TJCS_GRAY)
    return facts;
  const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
  constexpr tjscalingfactor kEighth{1, 8};
  const int width = TJSCALED(facts.width, kEighth),
            height = TJSCALED(facts.height, kEighth);
  std::vector<uint8_t> pixels(static_cast<size_t>(width) *
                              static_cast<size_t>(height) * 4);
  facts.in_color =
      tjDecompress2(handle.get(), data, size, pixels.data(), width, 0, height,
                    cmyk ? TJPF_CMYK : TJPF_RGBX, TJFLAG_LIMITSCANS) == 0 &&
      shows_color(pixels);
  return facts;
}

}  // namespace chexnet
