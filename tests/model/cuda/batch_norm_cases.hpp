// Synthetic maps for BatchNorm's kernels on the CPU, and the results of its
// definition, in double. Maps are [row][channel], as floats here and in the
// kernels' elements there.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/cuda/kernel_grid.hpp"
#include "model/cuda/kernels_on_cpu.hpp"
#include "support/catch.hpp"

namespace chexnet {
namespace {

constexpr float kEpsilon = 1e-5F;
struct Size {
  int64_t rows, channels;
  size_t count() const { return static_cast<size_t>(rows * channels); }
};

// The results of the kernels on a map; and of the definition, in double.
struct Results {
  Values mean, var, kept_mean, kept_var, y, y_inference, dweight, dbias, dx;
  // By each of two that read x, and the gradient of both.
  Values readers_dweight = {}, readers_dbias = {}, readers_dx = {};
};

struct Case {
  Size size;
  bool relu = false, shortcut = false;
  bool adds = false;  // readers_dx to `sum`
  float center = 0;   // of x
  int gap = 0;        // vectors between rows of x and of readers_dx
  Values x = {}, weight = {}, bias = {}, shortcuts = {}, dy = {}, sum = {};
};

constexpr float kKept = 2, kShare = .25F;

inline std::vector<unsigned> order_of(unsigned count, bool backwards) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0U);
  if (backwards) std::ranges::reverse(order);
  return order;
}

// How a grid's blocks run: one after the other, or all at once.
struct Launch {
  int64_t threads = 64, blocks = 7;
  bool backwards = false;
  std::optional<unsigned> at_once = {};  // the seed
};

template <class Kernel>
void on_grid(const KernelGrid& g, const Launch& launch, const Kernel& kernel) {
  const cuda_words::Index grid{g.channel_blocks, g.row_blocks},
      threads{g.block_vectors, g.block_rows};
  if (launch.at_once)
    cuda_words::run_at_once(grid, threads, *launch.at_once, kernel);
  else
    cuda_words::run_kernel(grid, threads,
                           order_of(g.row_blocks, launch.backwards), kernel);
}

// A type of elements, and its kernels' results for a case.
template <class Computed>
struct TypeOfElements {
  std::string name;
  double rounding;  // of one element, relative
  Computed computed;
  Values (*rounded)(const Values&);
};

// COMPUTED(space) is that of the kernels in a namespace.
#define TYPE_OF_ELEMENTS(space, rounding, computed)          \
  {                                                          \
#space, rounding, computed, [](const Values& values) {     \
      using E = ELEMENTS(space);                               \
      return E::decoded(E::encoded(values));                   \
    } \
  }
#define TYPES_OF_ELEMENTS(COMPUTED)                      \
  {                                                      \
    TYPE_OF_ELEMENTS(fp32, 0x1p-23, COMPUTED(fp32)),     \
        TYPE_OF_ELEMENTS(fp16, 0x1p-11, COMPUTED(fp16)), \
        TYPE_OF_ELEMENTS(bf16, 0x1p-8, COMPUTED(bf16))   \
  }

// Blocks of four threads: a thousand orders take seconds.
constexpr Launch kSmall{.threads = 4, .blocks = 3};

// Room for PartialSums, of vectors of `width` channels.
inline Values room_for_sums(const KernelGrid& g, int width) {
  return Values(size_t{g.row_blocks} * g.channel_blocks * g.block_vectors * 2 *
                    static_cast<size_t>(width),
                NAN);
}

inline Case made(Case c, Values (*rounded)(const Values&), unsigned seed) {
  std::mt19937 random(seed);
  const auto fill = [&](size_t count, float center, float width) {
    std::normal_distribution<float> normal(center, width);
    Values values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  const auto channels = static_cast<size_t>(c.size.channels);
  c.x = rounded(fill(c.size.count(), c.center, 1));
  c.dy = rounded(fill(c.size.count(), .1F, 1));
  c.shortcuts = rounded(fill(c.size.count(), 0, 1));
  c.sum = rounded(fill(c.size.count(), 0, 1));
  c.weight = fill(channels, 1, .3F);
  c.bias = fill(channels, 0, .3F);
  c.weight[1] = c.bias[1] = 0;  // ReLU of 0 cuts the gradient
  return c;
}

// One channel after the other.
inline Results by_definition(const Case& c) {
  const auto rows = static_cast<size_t>(c.size.rows),
             channels = static_cast<size_t>(c.size.channels);
  const auto n = static_cast<double>(rows);
  Results r;
  r.y.resize(c.x.size());
  r.y_inference.resize(c.x.size());
  r.dx.resize(c.x.size());
  r.readers_dx.resize(c.x.size());
  const auto put = [](Values& to, double value) {
    to.push_back(static_cast<float>(value));
  };
  for (size_t k = 0; k < channels; ++k) {
    const auto x = [&](size_t row) { return double{c.x[row * channels + k]}; };
    double mean = 0, variance = 0;
    for (size_t row = 0; row < rows; ++row) mean += x(row) / n;
    for (size_t row = 0; row < rows; ++row)
      variance += (x(row) - mean) * (x(row) - mean) / n;
    const double invstd = 1 / std::sqrt(variance + double{kEpsilon});
    const double unbiased = rows > 1 ? variance * n / (n - 1) : 0;
    const double kept_mean = kKept + kShare * mean;
    const double kept_var = kKept + kShare * unbiased;
    const double w = c.weight[k], b = c.bias[k];
    const auto y = [&](size_t row, double center, double scale) {
      double out = (x(row) - center) * scale * w + b;
      if (c.shortcut) out += c.shortcuts[row * channels + k];
      return c.relu ? std::max(out, 0.0) : out;
    };
    double dbias = 0, dweight = 0;
    const auto dy = [&](size_t row) {
      const bool cut = c.relu && (x(row) - mean) * invstd * w + b <= 0;
      return cut ? 0 : double{c.dy[row * channels + k]};
    };
    for (size_t row = 0; row < rows; ++row) {
      dbias += dy(row);
      dweight += dy(row) * (x(row) - mean) * invstd;
    }
    for (size_t row = 0; row < rows; ++row) {
      const size_t at = row * channels + k;
      const double z = (x(row) - mean) * invstd;
      const double dx = w * invstd * (dy(row) - dbias / n - z * dweight / n);
      r.y[at] = static_cast<float>(y(row, mean, invstd));
      r.y_inference[at] = static_cast<float>(
          y(row, kept_mean, 1 / std::sqrt(kept_var + double{kEpsilon})));
      r.dx[at] = static_cast<float>(dx);
      r.readers_dx[at] =
          static_cast<float>(2 * dx + (c.adds ? double{c.sum[at]} : 0));
    }
    put(r.mean, mean);
    put(r.var, variance);
    put(r.kept_mean, kept_mean);
    put(r.kept_var, kept_var);
    put(r.dweight, dweight);
    put(r.dbias, dbias);
  }
  return r;
}

// Root of the mean square of the difference, by that of `wanted`.
inline double difference(const Values& found, const Values& wanted) {
  REQUIRE(found.size() == wanted.size());
  double apart = 0, all = 1e-30;
  for (size_t i = 0; i < found.size(); ++i) {
    const double d = double{found[i]} - double{wanted[i]};
    apart += d * d;
    all += double{wanted[i]} * double{wanted[i]};
  }
  return std::sqrt(apart / all);
}

}  // namespace
}  // namespace chexnet
