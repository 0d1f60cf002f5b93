// File bytes to 8-bit gray pixels. The format is decided by magic bytes, never
// by the name. Before memory is taken for pixels, the header's size is checked
// against the limits, and against the file's length: a few bytes cannot hold
// millions of pixels. So an image takes at most 13 bytes a pixel of max_pixels
// (a progressive CMYK JPEG; a gray PNG takes 2). Color becomes gray by ITU-R
// 601-2 luma as in Pillow's convert("L"); alpha is dropped; 16-bit samples are
// divided by 257; the EXIF orientation of a JPEG or a PNG is applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "chexnet/data/image/gray_image.hpp"
#include "chexnet/data/image/resize.hpp"

namespace chexnet {

// Rows of an image are padded (GrayImage) and buffers of resizing depend on one
// side alone, so a limit of width x height would not limit memory.
constexpr int64_t kMaxSide = 65'535;  // pixels; JPEG's own limit

struct DecodeLimits {
  int64_t max_pixels = 64'000'000;
  // A JPEG may come at 1/2, 1/4 or 1/8 of its size (scaled in its DCT) as long
  // as neither side gets smaller than this, pixels; 0 = always at full size.
  int min_side = 0;
};

[[noreturn]] void throw_too_large(const std::string& origin);
// Calls `work` on one image. A lack of memory is an error of this image
// (DataError): others may be smaller.
template <class Work>
void within_memory(const std::string& origin, const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    throw_too_large(origin);
  } catch (const std::length_error&) {
    throw_too_large(origin);
  }
}

// DataError naming `origin` for anything that is not a whole PNG or JPEG within
// the limits. Thread-safe.
void decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits,
                  const std::string& origin, GrayImage& into);

// decode_image() and then resize() of the whole picture to `into` [size, size],
// in one pass over the pixels where the format allows it: they stay in the
// processor's cache.
void decode_resized(std::span<const std::byte> bytes,
                    const DecodeLimits& limits, const std::string& origin,
                    int size, ResizeKind kind, GrayImage& scratch,
                    uint8_t* into);

}  // namespace chexnet
