// Hostile JPEG files; what is taken has the pixels that TurboJPEG gives by
// itself.
#include <turbojpeg.h>

#include <memory>

#include "fuzz/image_checks.hpp"

namespace chexnet::fuzz {
namespace {

// TurboJPEG's gray, where the file is gray or YCbCr and has no EXIF block.
void compare(Bytes bytes, const DecodeLimits& limits) {
  const std::string text = text_of(bytes);
  if (text.find("Exif") != std::string::npos) return;
  static GrayImage image;
  if (!accepted<DataError>([&] { decode_image(bytes, limits, "x", image); }))
    return;
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitDecompress(),
                                                     tjDestroy);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colors = 0;
  require(tjDecompressHeader3(handle.get(), data, bytes.size(), &width, &height,
                              &sampling, &colors) == 0,
          "TurboJPEG takes the header");
  const auto part_of = [](int side, int part) {
    return (side + part - 1) / part;
  };
  int part = 1;
  while (part < 8 && limits.min_side > 0 &&
         std::min(part_of(width, 2 * part), part_of(height, 2 * part)) >=
             limits.min_side)
    part *= 2;
  width = part_of(width, part);
  height = part_of(height, part);
  require(width == image.width() && height == image.height(),
          "the picture has the header's size, or its part");
  if (colors != TJCS_GRAY && colors != TJCS_YCbCr) return;
  std::vector<uint8_t> pixels(static_cast<size_t>(width) *
                              static_cast<size_t>(height));
  require(tjDecompress2(handle.get(), data, bytes.size(), pixels.data(), width,
                        width, height, TJPF_GRAY,
                        TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) == 0,
          "TurboJPEG takes the picture");
  require(pixels == image.contiguous(), "its pixels are TurboJPEG's");
}

void run(Bytes bytes) {
  check_picture(bytes);
  compare(bytes, kSmall);
  for (const int min_side : {1, 4, 9})
    compare(bytes, {.max_pixels = kSmall.max_pixels, .min_side = min_side});
}

std::string file_of(int format, int sampling, int flags, const char* exif) {
  std::vector<uint8_t> pixels(24 * 17 * 4);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(i * 5 + i / 24);
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitCompress(),
                                                     tjDestroy);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  tjCompress2(handle.get(), pixels.data(), 24, 0, 17, format, &out, &size,
              sampling, 80, flags);
  std::string file(reinterpret_cast<char*>(out), size);
  tjFree(out);
  if (exif != nullptr) file.insert(2, std::string(exif, 36));
  return file;
}

// APP1 with one entry, the orientation: 6, of a little-endian TIFF.
constexpr char kExif[] =
    "\xFF\xE1\x00\x22"
    "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";

std::vector<std::string> seeds() {
  return {file_of(TJPF_GRAY, TJSAMP_GRAY, 0, nullptr),
          file_of(TJPF_RGB, TJSAMP_420, 0, nullptr),
          file_of(TJPF_RGB, TJSAMP_444, TJFLAG_PROGRESSIVE, nullptr),
          file_of(TJPF_CMYK, TJSAMP_444, 0, nullptr),
          file_of(TJPF_GRAY, TJSAMP_GRAY, 0, kExif)};
}

const Registered kTarget{{"jpeg", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
