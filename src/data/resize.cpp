#include "chexnet/data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// Which input pixels make an output pixel along one axis, and how much each counts.
struct Taps {
  std::vector<int> first;            // [out]
  std::vector<int> count;            // [out]
  std::vector<std::int32_t> weight;  // [out, most]
  int most = 0;
  int shift = 0;  // fixed-point bits (antialias only)
};

// The triangle filter of PyTorch's compute_index_ranges_int16_weights
// (aten/src/ATen/native/cpu/UpSampleKernel.cpp), which follows Pillow: support = max(1, scale),
// weights normalised in double, then as many fixed-point bits as fit int16.
Taps antialias_taps(int in, int out) {
  Taps taps;
  const double scale = static_cast<double>(in) / out;
  const double support = scale >= 1.0 ? scale : 1.0;
  const double inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
  taps.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  const auto most = static_cast<std::size_t>(taps.most);
  std::vector<double> weights(static_cast<std::size_t>(out) * most, 0.0);
  double largest = 0;
  for (int i = 0; i < out; ++i) {
    const double center = scale * (i + 0.5);
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int count =
        std::min(std::min(static_cast<int>(center + support + 0.5), in) - first, taps.most);
    double* w = &weights[static_cast<std::size_t>(i) * most];
    double total = 0;
    for (int j = 0; j < count; ++j) {
      const double distance = std::abs((j + first - center + 0.5) * inverse);
      w[j] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += w[j];
    }
    for (int j = 0; j < count; ++j) {
      if (total != 0) w[j] /= total;
      largest = std::max(largest, w[j]);
    }
    taps.first.push_back(first);
    taps.count.push_back(count);
  }
  for (taps.shift = 0; taps.shift < 22; ++taps.shift)
    if (static_cast<int>(0.5 + largest * (1 << (taps.shift + 1))) >= (1 << 15)) break;
  taps.weight.reserve(weights.size());
  for (const double w : weights)
    taps.weight.push_back(static_cast<std::int32_t>(0.5 + w * (1 << taps.shift)));
  return taps;
}

std::uint8_t rounded(std::int32_t sum, int shift) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (shift - 1))) >> shift, 0, 255));
}

void antialias(const GrayImage& source, Region r, int size, std::uint8_t* into) {
  const auto out = static_cast<std::size_t>(size);
  const auto stride = static_cast<std::size_t>(source.width);
  const std::uint8_t* top =
      &source.pixels[static_cast<std::size_t>(r.y) * stride + static_cast<std::size_t>(r.x)];
  // Horizontal: [height, size]. A pass that keeps the size is skipped, as in PyTorch.
  thread_local std::vector<std::uint8_t> rows;
  const std::uint8_t* mid = top;
  std::size_t mid_stride = stride;
  if (r.width != size) {
    const Taps taps = antialias_taps(r.width, size);
    rows.resize(static_cast<std::size_t>(r.height) * out);
    for (int y = 0; y < r.height; ++y) {
      const std::uint8_t* line = top + static_cast<std::size_t>(y) * stride;
      for (std::size_t x = 0; x < out; ++x) {
        const std::int32_t* w = &taps.weight[x * static_cast<std::size_t>(taps.most)];
        const std::uint8_t* p = line + taps.first[x];
        std::int32_t sum = 0;
        for (int j = 0; j < taps.count[x]; ++j) sum += w[j] * p[j];
        rows[static_cast<std::size_t>(y) * out + x] = rounded(sum, taps.shift);
      }
    }
    mid = rows.data();
    mid_stride = out;
  }
  if (r.height == size) {
    for (std::size_t y = 0; y < out; ++y) std::memcpy(into + y * out, mid + y * mid_stride, out);
    return;
  }
  const Taps taps = antialias_taps(r.height, size);
  thread_local std::vector<std::int32_t> sums;
  sums.resize(out);
  for (std::size_t y = 0; y < out; ++y) {
    std::ranges::fill(sums, 0);
    for (int j = 0; j < taps.count[y]; ++j) {
      const std::int32_t w =
          taps.weight[y * static_cast<std::size_t>(taps.most) + static_cast<std::size_t>(j)];
      const std::uint8_t* line = mid + static_cast<std::size_t>(taps.first[y] + j) * mid_stride;
      for (std::size_t x = 0; x < out; ++x) sums[x] += w * line[x];
    }
    for (std::size_t x = 0; x < out; ++x) into[y * out + x] = rounded(sums[x], taps.shift);
  }
}

// Overlaps of output box i = [i*in, (i+1)*in) with input pixels [j*out, (j+1)*out), in units of
// 1/out of a pixel: whole numbers that add up to `in`.
Taps area_taps(int in, int out) {
  Taps taps;
  taps.most = in / out + 2;
  for (int i = 0; i < out; ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * in, end = begin + in;
    const int first = static_cast<int>(begin / out);
    const int last = static_cast<int>((end - 1) / out);
    taps.first.push_back(first);
    taps.count.push_back(last - first + 1);
    for (int j = first; j < first + taps.most; ++j) {
      const std::int64_t low = std::max(begin, static_cast<std::int64_t>(j) * out);
      const std::int64_t high = std::min(end, static_cast<std::int64_t>(j + 1) * out);
      taps.weight.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(0, high - low)));
    }
  }
  return taps;
}

void area(const GrayImage& source, Region r, int size, std::uint8_t* into) {
  const Taps horizontal = area_taps(r.width, size), vertical = area_taps(r.height, size);
  const auto out = static_cast<std::size_t>(size);
  const std::int64_t total = static_cast<std::int64_t>(r.width) * r.height;
  thread_local std::vector<std::int64_t> line_sums;  // [height, size], exact
  line_sums.resize(static_cast<std::size_t>(r.height) * out);
  for (int y = 0; y < r.height; ++y) {
    const std::uint8_t* line =
        &source.pixels[static_cast<std::size_t>(r.y + y) * static_cast<std::size_t>(source.width) +
                       static_cast<std::size_t>(r.x)];
    for (std::size_t x = 0; x < out; ++x) {
      const std::int32_t* w = &horizontal.weight[x * static_cast<std::size_t>(horizontal.most)];
      const std::uint8_t* p = line + horizontal.first[x];
      std::int64_t sum = 0;
      for (int j = 0; j < horizontal.count[x]; ++j) sum += std::int64_t{w[j]} * p[j];
      line_sums[static_cast<std::size_t>(y) * out + x] = sum;
    }
  }
  for (std::size_t y = 0; y < out; ++y) {
    for (std::size_t x = 0; x < out; ++x) {
      std::int64_t sum = 0;
      for (int j = 0; j < vertical.count[y]; ++j)
        sum +=
            vertical
                .weight[y * static_cast<std::size_t>(vertical.most) + static_cast<std::size_t>(j)] *
            line_sums[static_cast<std::size_t>(vertical.first[y] + j) * out + x];
      into[y * out + x] = static_cast<std::uint8_t>((2 * sum + total) / (2 * total));
    }
  }
}

}  // namespace

ResizeKind resize_kind(const std::string& name) {
  if (name == "antialias") return ResizeKind::kAntialias;
  if (name == "area") return ResizeKind::kArea;
  throw ConfigError("[resize] no resize '" + name + "'. Hint: antialias or area");
}

void resize(const GrayImage& source, Region region, int size, ResizeKind kind, std::uint8_t* into) {
  if (kind == ResizeKind::kAntialias)
    antialias(source, region, size, into);
  else
    area(source, region, size, into);
}

}  // namespace chexnet
