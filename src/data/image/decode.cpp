// The first bytes decide, never the name. The error names files that people
// mistake for pictures (DICOM, WebP, the page of a failed download), with what
// to do about it.
#include "chexnet/data/image/decode.hpp"

#include <algorithm>
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "formats.hpp"

namespace chexnet {

void decode_failed(const std::string& origin, const std::string& what,
                   const std::string& hint) {
  throw DataError("[decode] {}: {}. Hint: {}", origin, what, hint);
}

void check_size(int64_t width, int64_t height, const DecodeLimits& limits,
                const std::string& origin) {
  if (width <= 0 || height <= 0)
    decode_failed(origin, "has no pixels", "the file is damaged");
  const auto size = [&] {
    return "is " + std::to_string(width) + " x " + std::to_string(height) +
           " pixels, ";
  };
  if (std::max(width, height) > kMaxSide)
    decode_failed(origin,
                  formatted("{}more than {} on a side", size(), kMaxSide),
                  "no radiograph is that long: is the file damaged?");
  if (width > limits.max_pixels / height)
    decode_failed(
        origin,
        formatted("{}more than the limit of {}", size(), limits.max_pixels),
        "no radiograph has as many: is the file damaged?");
}

void throw_too_large(const std::string& origin) {
  throw DataError(
      "[images] {}: needs more memory than there is. Hint: a damaged size, or "
      "an image for a machine with more",
      origin);
}

namespace {

bool is_png(std::span<const std::byte> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()),
                          bytes.size())
      .starts_with("\x89PNG\r\n\x1a\n");
}

void decode_any(std::span<const std::byte> bytes, const DecodeLimits& limits,
                const std::string& origin, GrayImage& into) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  if (is_png(bytes)) return decode_png(bytes, limits, origin, into);
  if (text.starts_with("\xFF\xD8\xFF"))
    return decode_jpeg(bytes, limits, origin, into);
  if (text.empty())
    decode_failed(origin, "the file is empty", "fetch it again");
  if (text.size() > 132 && text.substr(128, 4) == "DICM")
    decode_failed(origin, "is DICOM, which is not read here",
                  "convert it to 8-bit gray PNG first: chexnet-dicom");
  if (text.size() > 12 && text.starts_with("RIFF") &&
      text.substr(8, 4) == "WEBP")
    decode_failed(origin, "WebP is not supported", "convert it to PNG");
  decode_failed(origin, "is neither PNG nor JPEG by its first bytes",
                "is it a download error page?");
}

}  // namespace

void decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits,
                  const std::string& origin, GrayImage& into) {
  within_memory(origin, [&] { decode_any(bytes, limits, origin, into); });
}

void decode_resized(std::span<const std::byte> bytes,
                    const DecodeLimits& limits, const std::string& origin,
                    int size, ResizeKind kind, GrayImage& scratch,
                    uint8_t* into) {
  within_memory(origin, [&] {
    if (kind == ResizeKind::kAntialias && is_png(bytes) &&
        decode_png_resized(bytes, limits, origin, size, into))
      return;
    decode_any(bytes, limits, origin, scratch);
    resize(scratch, {0, 0, scratch.width(), scratch.height()}, size, kind,
           into);
  });
}

}  // namespace chexnet
