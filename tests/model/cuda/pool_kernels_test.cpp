// The kernels' own source on threads of the CPU, against loops over windows.
// Maps are [image][y][x][channel].
#include <random>

#include "model/cuda/kernels_on_cpu.hpp"
#include "support/catch.hpp"

namespace chexnet {
namespace {

struct Map {
  int images, height, width, channels;
  Values values;
  Map(int n, int h, int w, int c)
      : images(n),
        height(h),
        width(w),
        channels(c),
        values(static_cast<size_t>(n) * h * w * c) {}
  float& at(int n, int y, int x, int c) {
    return values[static_cast<size_t>(((n * height + y) * width + x) *
                                      channels) +
                  static_cast<size_t>(c)];
  }
};

// Small whole numbers, so that there are equal ones and sums are exact.
Map filled(Map map, unsigned seed) {
  std::mt19937 random(seed);
  for (float& value : map.values) value = static_cast<float>(random() % 9) - 4;
  return map;
}

constexpr int kImages = 2, kChannels = 16;

struct Pooled {
  Map max, max_gradient, average, average_gradient;
};

template <class Visit>
void each(const Map& map, const Visit& visit) {
  for (int n = 0; n < map.images; ++n)
    for (int y = 0; y < map.height; ++y)
      for (int x = 0; x < map.width; ++x)
        for (int c = 0; c < map.channels; ++c) visit(n, y, x, c);
}

// `dmax` and `dmean` have the shapes of the results.
Pooled by_definition(Map x, Map dmax, Map dmean) {
  Pooled out{dmax, x, dmean, x};
  std::ranges::fill(out.max_gradient.values, 0.0F);
  std::ranges::fill(out.average_gradient.values, 0.0F);
  each(dmax, [&](int n, int y, int w, int c) {
    int row = -1, column = -1;
    for (int v = 2 * y - 1; v < 2 * y + 2; ++v)
      for (int u = 2 * w - 1; u < 2 * w + 2; ++u) {
        if (v < 0 || u < 0 || v >= x.height || u >= x.width) continue;
        if (row >= 0 && x.at(n, v, u, c) <= x.at(n, row, column, c)) continue;
        row = v;
        column = u;
      }
    out.max.at(n, y, w, c) = x.at(n, row, column, c);
    out.max_gradient.at(n, row, column, c) += dmax.at(n, y, w, c);
  });
  each(dmean, [&](int n, int y, int w, int c) {
    float sum = 0;
    for (int tap = 0; tap < 4; ++tap) {
      sum += x.at(n, 2 * y + tap / 2, 2 * w + tap % 2, c);
      out.average_gradient.at(n, 2 * y + tap / 2, 2 * w + tap % 2, c) =
          dmean.at(n, y, w, c) / 4;
    }
    out.average.at(n, y, w, c) = sum / 4;
  });
  return out;
}

#define POOLED_BY(space)                                                   \
  [](const Map& x, const Map& dmax, const Map& dmean) {                    \
    using E = ELEMENTS(space);                                             \
    constexpr int kVectors = kChannels / space::kWidth;                    \
    const auto shape = [](const Map& map) {                                \
      return PooledShape{map.height, map.width, kVectors};                 \
    };                                                                     \
    const auto in = E::encoded(x.values), above = E::encoded(dmax.values), \
               beside = E::encoded(dmean.values);                          \
    auto y = above, mean = beside, dx = in, dx_mean = in;                  \
    std::vector<space::Taps> taps(above.size());                           \
    const auto run = [](const auto& kernel) {                              \
      cuda_words::run_kernel({3, 1}, {16, 1}, {0}, kernel);                \
    };                                                                     \
    const auto count = [](const auto& vectors) {                           \
      return static_cast<unsigned>(vectors.size());                        \
    };                                                                     \
    run([&] {                                                              \
      space::max_pool_forward(in.data(), shape(x), shape(dmax), count(y),  \
                              y.data(), taps.data());                      \
    });                                                                    \
    run([&] {                                                              \
      space::max_pool_backward(above.data(), taps.data(), shape(x),        \
                               shape(dmax), count(dx), dx.data());         \
    });                                                                    \
    run([&] {                                                              \
      space::average_pool_forward(in.data(), shape(x), shape(dmean),       \
                                  count(mean), mean.data());               \
    });                                                                    \
    run([&] {                                                              \
      space::average_pool_backward(beside.data(), shape(x), shape(dmean),  \
                                   count(dx_mean), dx_mean.data());        \
    });                                                                    \
    Pooled out{dmax, x, dmean, x};                                         \
    out.max.values = E::decoded(y);                                        \
    out.max_gradient.values = E::decoded(dx);                              \
    out.average.values = E::decoded(mean);                                 \
    out.average_gradient.values = E::decoded(dx_mean);                     \
    return out;                                                            \
  }

#define MASKED_BY(space)                                                    \
  [](const Values& dy, const Values& more, const Values& y) {               \
    using E = ELEMENTS(space);                                              \
    const auto d = E::encoded(dy), m = E::encoded(more), v = E::encoded(y); \
    auto dx = d;                                                            \
    cuda_words::run_kernel({2, 1}, {8, 1}, {0}, [&] {                       \
      space::relu_backward(d.data(), more.empty() ? nullptr : m.data(),     \
                           v.data(), static_cast<unsigned>(d.size()),       \
                           dx.data());                                      \
    });                                                                     \
    return E::decoded(dx);                                                  \
  }

}  // namespace

TEST_CASE("kernels of pooling are what their definition says") {
  using Pool = Pooled (*)(const Map&, const Map&, const Map&);
  for (const Pool pool :
       {Pool(POOLED_BY(fp32)), Pool(POOLED_BY(fp16)), Pool(POOLED_BY(bf16))})
    for (const auto& [height, width] :
         {std::pair(8, 8), {7, 10}, {9, 5}, {2, 2}, {3, 3}}) {
      INFO(height << " x " << width);
      const Map x = filled({kImages, height, width, kChannels}, 1);
      const Map dmax =
          filled({kImages, (height + 1) / 2, (width + 1) / 2, kChannels}, 2);
      const Map dmean = filled({kImages, height / 2, width / 2, kChannels}, 3);
      const Pooled found = pool(x, dmax, dmean),
                   wanted = by_definition(x, dmax, dmean);
      CHECK(found.max.values == wanted.max.values);
      CHECK(found.max_gradient.values == wanted.max_gradient.values);
      CHECK(found.average.values == wanted.average.values);
      CHECK(found.average_gradient.values == wanted.average_gradient.values);
    }
}

TEST_CASE("a NaN in a window is its maximum, and gets the gradient") {
  Map x = filled({1, 4, 4, kChannels}, 1);
  const Map dmax = filled({1, 2, 2, kChannels}, 2);
  x.at(0, 1, 1, 3) = NAN;  // of all four windows
  const Pooled found =
      POOLED_BY(bf16)(x, dmax, filled({1, 2, 2, kChannels}, 3));
  Map max = found.max, gradient = found.max_gradient, given = dmax;
  float sum = 0;
  for (int window = 0; window < 4; ++window) {
    CHECK(std::isnan(max.at(0, window / 2, window % 2, 3)));
    sum += given.at(0, window / 2, window % 2, 3);
  }
  CHECK(gradient.at(0, 1, 1, 3) == sum);
}

TEST_CASE("the kernel of ReLU's gradient adds and cuts") {
  const Values dy = filled({1, 5, 7, kChannels}, 1).values,
               more = filled({1, 5, 7, kChannels}, 2).values,
               y = filled({1, 5, 7, kChannels}, 3).values;
  for (const auto mask :
       {+MASKED_BY(fp32), +MASKED_BY(fp16), +MASKED_BY(bf16)}) {
    const Values both = mask(dy, more, y), one = mask(dy, {}, y);
    for (size_t i = 0; i < y.size(); ++i) {
      REQUIRE(both[i] == (y[i] > 0 ? dy[i] + more[i] : 0));
      REQUIRE(one[i] == (y[i] > 0 ? dy[i] : 0));
    }
  }
}

}  // namespace chexnet
