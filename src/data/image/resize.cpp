// Two definitions of shrinking, both separable: along the rows first, then
// along the columns.
//
//   antialias   output pixel i is a weighted sum of input pixels around
//               scale * (i + 0.5), the weights a triangle as wide as the scale;
//               rounded to a byte after each axis
//   area        the exact mean of the box [i, i + 1) * scale, rounded once at
//               the end
//
// Antialias takes rows as they come and keeps few of them: input row y, shrunk
// along its length, is at line y mod ring_, and an output row is made as soon
// as the last line it needs is there.
//
//   input rows     0 1 2 3 4 5 6 7 8 …
//   output row 0   |-------|
//   output row 1         |-------|
#include "chexnet/data/image/resize.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "chexnet/core/error.hpp"
#include "resize_kernels.hpp"

namespace chexnet {
namespace {

// The triangle filter of PyTorch's compute_index_ranges_int16_weights
// (aten/src/ATen/native/cpu/UpSampleKernel.cpp), which follows Pillow: support
// = max(1, scale), weights normalized in double, then as many fixed-point bits
// as fit int16.
Taps antialias_taps(int in, int out) {
  Taps taps;
  const double scale = static_cast<double>(in) / out;
  const double support = scale >= 1.0 ? scale : 1.0;
  const double inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
  std::vector<int> count(static_cast<size_t>(out));
  int widest = 0;
  for (int i = 0; i < out; ++i) {
    const double center = scale * (i + 0.5);
    taps.first.push_back(std::max(static_cast<int>(center - support + 0.5), 0));
    count[static_cast<size_t>(i)] =
        std::min(static_cast<int>(center + support + 0.5), in) -
        taps.first.back();
    widest = std::max(widest, count[static_cast<size_t>(i)]);
  }
  taps.most = (widest + 7) / 8 * 8;
  const auto most = static_cast<size_t>(taps.most);
  std::vector<double> weights(static_cast<size_t>(out) * most, 0.0);
  double largest = 0;
  for (int i = 0; i < out; ++i) {
    const double center = scale * (i + 0.5);
    const int first = taps.first[static_cast<size_t>(i)];
    double* w = &weights[static_cast<size_t>(i) * most];
    double total = 0;
    for (int j = 0; j < count[static_cast<size_t>(i)]; ++j) {
      const double distance = std::abs((j + first - center + 0.5) * inverse);
      w[j] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += w[j];
    }
    for (int j = 0; j < count[static_cast<size_t>(i)]; ++j) {
      if (total != 0) w[j] /= total;
      largest = std::max(largest, w[j]);
    }
  }
  for (taps.shift = 0; taps.shift < 22; ++taps.shift)
    if (static_cast<int>(0.5 + largest * (1 << (taps.shift + 1))) >= (1 << 15))
      break;
  taps.weight.reserve(weights.size());
  for (const double w : weights)
    taps.weight.push_back(static_cast<int16_t>(0.5 + w * (1 << taps.shift)));
  return taps;
}

// Fills in the 4:1 case where the weights are the same everywhere and small
// whole numbers times a power of two: 1, 3, 5, 7, 7, 5, 3, 1 of 32 then.
void find_quarter(int in, int out, Taps& taps) {
  if (in != 4 * out || taps.most != 8 || out < 3) return;
  const int16_t* usual = &taps.weight[8];
  unsigned bits = 0;
  for (int j = 0; j < 8; ++j) bits |= static_cast<unsigned>(usual[j]);
  const int dropped = std::countr_zero(bits);
  int sum = 0;
  for (int j = 0; j < 8; ++j) sum += usual[j] >> dropped;
  if (sum > 127) return;  // 255 times that fits 16 bits
  for (int x = 1; x < out - 1; ++x) {
    const int16_t* w = &taps.weight[static_cast<size_t>(x) * 8];
    if (taps.first[static_cast<size_t>(x)] != 4 * x - 2 ||
        !std::equal(w, w + 8, usual))
      return;
  }
  for (size_t j = 0; j < 8; ++j)
    taps.quarter_weight[j] = static_cast<int8_t>(usual[j] >> dropped);
  taps.quarter_shift = taps.shift - dropped;
}

const ResizeKernels& kernels() {
#if defined(__x86_64__)
  static const ResizeKernels& best =
      __builtin_cpu_supports("avx2") ? kResizeAvx2 : kResizePlain;
  return best;
#else
  return kResizePlain;
#endif
}

// Callers need taps of the same sizes again and again; each thread keeps one
// set per axis.
const Taps& kept_taps(int axis, int in, int out) {
  struct Kept {
    int in = 0, out = 0;
    Taps taps;
  };
  thread_local Kept kept[2];
  Kept& k = kept[axis];
  if (k.in != in || k.out != out) {
    k = {in, out, antialias_taps(in, out)};
    find_quarter(in, out, k.taps);
  }
  return k.taps;
}

decltype(ResizeKernels::horizontal) horizontal_kernel(const Taps& taps) {
  // The vector kernel reads whole groups of taps: near the right edge that may
  // be more than the room beside the image holds.
  const bool fits = taps.most <= static_cast<int>(GrayImage::kRoom);
  return fits ? kernels().horizontal : kResizePlain.horizontal;
}

// The input rows that output row y is made of.
struct Column {
  const int16_t* weight;
  int first, count;
};
Column column_of(const Taps& taps, int y) {
  const auto at = static_cast<size_t>(y);
  const int16_t* weight = &taps.weight[at * static_cast<size_t>(taps.most)];
  int count = taps.most;
  while (count > 1 && weight[count - 1] == 0) --count;
  return {weight, taps.first[at], count};
}

// One output row of `size` pixels; `row(y)` is input row y.
template <class Row>
void shrink_down(const Taps& taps, const Column& column, int size, Row row,
                 uint8_t* into) {
  thread_local std::vector<const uint8_t*> rows;
  rows.resize(static_cast<size_t>(taps.most));
  for (int j = 0; j < column.count; ++j)
    rows[static_cast<size_t>(j)] = row(column.first + j);
  kernels().vertical(rows.data(), column.weight, column.count, taps.shift, size,
                     into);
}

void antialias(const GrayImage& source, Region r, int size, uint8_t* into) {
  // A pass that keeps the size is skipped, as in PyTorch.
  const bool across = r.width != size, down = r.height != size;
  const auto row = [&](int y) { return source.row(r.y + y) + r.x; };
  if (across && down) {
    AntialiasRows rows(r.width, r.height, size, into);
    for (int y = 0; y < r.height; ++y) rows.add(row(y));
    return;
  }
  for (int y = 0; y < size; ++y, into += size) {
    if (down)
      shrink_down(kept_taps(1, r.height, size),
                  column_of(kept_taps(1, r.height, size), y), size, row, into);
    else if (across)
      horizontal_kernel(kept_taps(0, r.width, size))(
          row(y), kept_taps(0, r.width, size), into);
    else
      std::memcpy(into, row(y), static_cast<size_t>(size));
  }
}

// Overlaps of output box i = [i*in, (i+1)*in) with input pixels [j*out,
// (j+1)*out), in units of 1/out of a pixel: whole numbers that add up to `in`.
struct Overlaps {
  std::vector<int> first, count;  // [out]
  std::vector<int32_t> weight;    // [out, most]
  int most = 0;
};
Overlaps area_overlaps(int in, int out) {
  Overlaps overlaps;
  overlaps.most = in / out + 2;
  for (int i = 0; i < out; ++i) {
    const int64_t begin = static_cast<int64_t>(i) * in, end = begin + in;
    const int first = static_cast<int>(begin / out);
    const int last = static_cast<int>((end - 1) / out);
    overlaps.first.push_back(first);
    overlaps.count.push_back(last - first + 1);
    for (int j = first; j < first + overlaps.most; ++j) {
      const int64_t low = std::max(begin, static_cast<int64_t>(j) * out);
      const int64_t high = std::min(end, static_cast<int64_t>(j + 1) * out);
      overlaps.weight.push_back(
          static_cast<int32_t>(std::max<int64_t>(0, high - low)));
    }
  }
  return overlaps;
}

// Whole boxes of `by` x `across` pixels: sums of columns first, which the
// compiler vectorizes.
void area_of_whole_boxes(const GrayImage& source, Region r, int size,
                         uint8_t* into) {
  const int across = r.width / size, by = r.height / size;
  const auto total = static_cast<uint32_t>(across * by);
  thread_local std::vector<uint32_t> columns;
  columns.resize(static_cast<size_t>(r.width));
  for (int y = 0; y < size; ++y) {
    std::ranges::fill(columns, 0u);
    for (int j = 0; j < by; ++j) {
      const uint8_t* line = source.row(r.y + y * by + j) + r.x;
      for (size_t x = 0; x < columns.size(); ++x) columns[x] += line[x];
    }
    const uint32_t* from = columns.data();
    for (int x = 0; x < size; ++x, from += across) {
      uint32_t sum = 0;
      for (int j = 0; j < across; ++j) sum += from[j];
      *into++ = static_cast<uint8_t>((2 * sum + total) / (2 * total));
    }
  }
}

// into[x] = the sum over output box x of one line.
void sum_line(const uint8_t* line, const Overlaps& boxes,
              std::vector<int64_t>& into) {
  for (size_t x = 0; x < into.size(); ++x) {
    const int32_t* w = &boxes.weight[x * static_cast<size_t>(boxes.most)];
    const uint8_t* p = line + boxes.first[x];
    int64_t sum = 0;
    for (int j = 0; j < boxes.count[x]; ++j) sum += int64_t{w[j]} * p[j];
    into[x] = sum;
  }
}

void area(const GrayImage& source, Region r, int size, uint8_t* into) {
  // Up to 2048 x 2048 pixels a box the sums fit 32 bits.
  if (r.width % size == 0 && r.height % size == 0 && r.width / size <= 2048 &&
      r.height / size <= 2048)
    return area_of_whole_boxes(source, r, size, into);
  const Overlaps horizontal = area_overlaps(r.width, size),
                 vertical = area_overlaps(r.height, size);
  const auto out = static_cast<size_t>(size);
  const int64_t total = static_cast<int64_t>(r.width) * r.height;
  thread_local std::vector<int64_t> line_sums, sums;  // [size], exact
  line_sums.resize(out);
  int summed = -1;  // the input row in line_sums: neighboring boxes share one
  for (size_t y = 0; y < out; ++y) {
    const int32_t* w = &vertical.weight[y * static_cast<size_t>(vertical.most)];
    sums.assign(out, 0);
    for (int j = 0; j < vertical.count[y]; ++j) {
      const int row = vertical.first[y] + j;
      if (row != summed)
        sum_line(source.row(r.y + row) + r.x, horizontal, line_sums);
      summed = row;
      for (size_t x = 0; x < out; ++x) sums[x] += w[j] * line_sums[x];
    }
    for (size_t x = 0; x < out; ++x)
      into[y * out + x] =
          static_cast<uint8_t>((2 * sums[x] + total) / (2 * total));
  }
}

}  // namespace

AntialiasRows::AntialiasRows(int width, int height, int size, uint8_t* into)
    : across_(kept_taps(0, width, size)),
      down_(kept_taps(1, height, size)),
      horizontal_(horizontal_kernel(across_)),
      size_(size),
      into_(into) {
  thread_local std::vector<uint8_t> memory;
  // For the last vectors of a line.
  stride_ = static_cast<size_t>(size) + GrayImage::kRoom;
  ring_ = static_cast<int>(std::bit_ceil(static_cast<unsigned>(down_.most)));
  memory.resize(stride_ * static_cast<size_t>(ring_));
  lines_ = memory.data();
}

uint8_t* AntialiasRows::line(int y) const {
  return lines_ + static_cast<size_t>(y & (ring_ - 1)) * stride_;
}

void AntialiasRows::add(const uint8_t* row) {
  assert(ring_ >= down_.most);
  horizontal_(row, across_, line(added_++));
  for (; written_ < size_; ++written_, into_ += size_) {
    const Column column = column_of(down_, written_);
    if (column.first + column.count > added_) return;
    shrink_down(
        down_, column, size_, [&](int y) { return line(y); }, into_);
  }
}

void resize(const GrayImage& source, Region region, int size, ResizeKind kind,
            uint8_t* into) {
  assert(size > 0 && region.width > 0 && region.height > 0);
  assert(region.x >= 0 && region.x + region.width <= source.width());
  assert(region.y >= 0 && region.y + region.height <= source.height());
  if (kind == ResizeKind::kAntialias)
    antialias(source, region, size, into);
  else
    area(source, region, size, into);
}

}  // namespace chexnet
