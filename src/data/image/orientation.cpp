// The block is read by hand, each access within its bytes. Turning follows the
// table of orientations of EXIF 2.3.
#include "orientation.hpp"

#include <utility>

namespace chexnet {
namespace {

// The bytes of a TIFF header as EXIF has it, in the byte order it names. Beyond
// the end it reads 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes)
      : bytes_(bytes), little_(at(0) == 'I') {}

  // Of the first directory; 0 when it has no such tag.
  unsigned short_value(unsigned tag) const {
    const size_t directory = u32(4);
    const unsigned entries = u16(directory);
    for (unsigned e = 0; e < entries; ++e) {
      const size_t entry = directory + 2 + size_t{12} * e;
      if (entry + 12 > bytes_.size()) break;
      if (u16(entry) == tag) return u16(entry + 8);
    }
    return 0;
  }

 private:
  unsigned at(size_t i) const {
    return i < bytes_.size() ? std::to_integer<unsigned>(bytes_[i]) : 0u;
  }
  unsigned u16(size_t i) const {
    return little_ ? at(i) | at(i + 1) << 8 : at(i) << 8 | at(i + 1);
  }
  unsigned u32(size_t i) const {
    return little_ ? u16(i) | u16(i + 2) << 16 : u16(i) << 16 | u16(i + 2);
  }

  std::span<const std::byte> bytes_;
  bool little_;
};

}  // namespace

int orientation_of(std::span<const std::byte> tiff) {
  constexpr unsigned kOrientation = 0x0112;
  const unsigned value = Tiff(tiff).short_value(kOrientation);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

void turn_upright(int orientation, GrayImage& image) {
  if (orientation == 1) return;
  const int w = image.width(), h = image.height();
  const bool swap = orientation >= 5;
  const int out_w = swap ? h : w, out_h = swap ? w : h;
  GrayImage out;
  out.reset(out_w, out_h);
  for (int y = 0; y < out_h; ++y) {
    for (int x = 0; x < out_w; ++x) {
      int sx = swap ? y : x, sy = swap ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 ||
          orientation == 8)
        sx = w - 1 - sx;
      if (orientation == 3 || orientation == 4 || orientation == 6 ||
          orientation == 7)
        sy = h - 1 - sy;
      out.row(y)[x] = image.row(sy)[sx];
    }
  }
  image = std::move(out);
}

}  // namespace chexnet
