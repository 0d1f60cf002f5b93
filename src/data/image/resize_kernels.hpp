// The two passes of a separable resampling, for one line each, by instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

// Which input pixels make an output pixel along one axis, and how much each
// counts.
struct Taps {
  std::vector<int> first;  // [out] first input pixel
  // [out, most], zeros after an output's last tap
  std::vector<int16_t> weight;
  int most = 0;   // taps of an output, a multiple of 8
  int shift = 0;  // fixed-point bits of the weights
  // An exact 4:1 shrink (1024 -> 256, the usual one here): all outputs but the
  // first and the last take 8 pixels from 4x - 2 on with these weights of
  // `quarter_shift` bits; 0 = not so.
  int8_t quarter_weight[8] = {};
  int quarter_shift = 0;
};

struct ResizeKernels {
  // into[x] = sum_j weight[x][j] * line[first[x] + j], rounded. Reads up to
  // `most` bytes from line + first[x], which must be readable.
  void (*horizontal)(const uint8_t* line, const Taps& taps, uint8_t* into);
  // into[x] = sum_j weight[j] * rows[j][x], rounded, for x < width.
  void (*vertical)(const uint8_t* const* rows, const int16_t* weight, int count,
                   int shift, int width, uint8_t* into);
};

extern const ResizeKernels kResizePlain, kResizeAvx2;

// The antialias resize of a picture whose rows come one by one, where both
// sides change. Rows have GrayImage::kRoom readable bytes after them. The
// memory between the passes is this thread's: one object at a time. It holds
// the shrunk lines that an output row still needs, however high the picture is.
class AntialiasRows {
 public:
  AntialiasRows(int width, int height, int size, uint8_t* into);
  // After `height` rows into [size, size] is complete.
  void add(const uint8_t* row);

 private:
  uint8_t* line(int y) const;  // of input row y

  const Taps& across_;
  const Taps& down_;
  void (*horizontal_)(const uint8_t*, const Taps&, uint8_t*);
  int size_;
  uint8_t* into_;   // where the next output row goes
  uint8_t* lines_;  // input row y at y mod ring_
  size_t stride_;
  int ring_;                     // lines it has, a power of 2
  int added_ = 0, written_ = 0;  // input and output rows
};

}  // namespace chexnet
