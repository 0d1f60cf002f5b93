// The kernels that pool in the pass of BatchNorm, their source on threads of
// the CPU: forward against BatchNorm's kernel and loops over windows, to the
// bit; backward against sums in double.
#include "model/cuda/batch_norm_cases.hpp"

namespace chexnet {
namespace {

struct Form {
  int images, height, width;
};

// Of one kind of pool; for the maximum `sum` is unused.
struct Pooled {
  Values y, kept_mean, kept_var, dweight, dbias, dx;
  std::vector<int> argmax = {};
};

struct Found {
  Values whole;  // y before it is pooled, by batch_norm_apply
  Pooled max, average;
};

struct Gradients {
  Values max, average;  // by the pooled maps
};

PoolShape max_shape(const Form& f) {
  return {f.images, f.height, f.width, (f.height + 1) / 2, (f.width + 1) / 2};
}
PoolShape average_shape(const Form& f) {
  return {f.images, f.height, f.width, f.height / 2, f.width / 2};
}
int64_t windows_of(const PoolShape& s) {
  return int64_t{s.images} * s.out_height * s.out_width;
}

// visit(pooled element, y and x of the window's center or first pixel, element
// of a map's row 0 of that image and channel)
template <class Visit>
void each_window(const PoolShape& s, int64_t channels, const Visit& visit) {
  size_t at = 0;
  for (int n = 0; n < s.images; ++n)
    for (int y = 0; y < s.out_height; ++y)
      for (int x = 0; x < s.out_width; ++x)
        for (int64_t c = 0; c < channels; ++c)
          visit(at++, 2 * y, 2 * x, [=](int row, int column) {
            return static_cast<size_t>(
                ((int64_t{n} * s.height + row) * s.width + column) * channels +
                c);
          });
}

// From a map after ReLU: the maxima and which pixels they are, -1 where ReLU
// cut all.
struct Maxima {
  Values y;
  std::vector<int> argmax;
  std::vector<size_t> pixels;
};
Maxima maxima_of(const Values& whole, const Form& f, int64_t channels) {
  const PoolShape s = max_shape(f);
  Maxima out;
  each_window(s, channels, [&](size_t, int y, int x, const auto& element) {
    float best = 0;
    int chosen = 9;
    size_t pixel = 0;
    for (int t = 0; t < 9; ++t) {
      const int row = y - 1 + t / 3, column = x - 1 + t % 3;
      if (row < 0 || column < 0 || row >= s.height || column >= s.width)
        continue;
      const float v = whole[element(row, column)];
      if (v <= best) continue;  // a NaN stays
      best = v;
      chosen = t;
      pixel = element(row, column);
    }
    out.y.push_back(best);
    out.argmax.push_back(chosen);
    out.pixels.push_back(pixel);
  });
  return out;
}

Values averages_of(const Values& whole, const Form& f, int64_t channels) {
  Values out;
  each_window(average_shape(f), channels,
              [&](size_t, int y, int x, const auto& element) {
                float sum = 0;
                for (int t = 0; t < 4; ++t)
                  sum += whole[element(y + t / 2, x + t % 2)];
                out.push_back(sum * .25F);
              });
  return out;
}

// Of the map before it is pooled.
Values max_gradient(const Values& dy, const Maxima& maxima, size_t count) {
  Values out(count);
  for (size_t i = 0; i < dy.size(); ++i)
    if (maxima.argmax[i] != 9) out[maxima.pixels[i]] += dy[i];
  return out;
}
Values average_gradient(const Values& dy, const Form& f, int64_t channels,
                        size_t count) {
  Values out(count);
  each_window(average_shape(f), channels,
              [&](size_t at, int y, int x, const auto& element) {
                for (int t = 0; t < 4; ++t)
                  out[element(y + t / 2, x + t % 2)] = dy[at] / 4;
              });
  return out;
}

#define FOUND_BY(space)                                                       \
  [](const Case& c, const Form& form, const Gradients& dy,                    \
     const Launch& launch) {                                                  \
    using E = ELEMENTS(space);                                                \
    using Map = std::vector<space::Vector>;                                   \
    const auto channels = static_cast<size_t>(c.size.channels);               \
    const int vectors = static_cast<int>(c.size.channels) / space::kWidth;    \
    const long long rows = c.size.rows, apart = vectors + c.gap;              \
    const Results by_double = by_definition(c);                               \
    const auto spread = [&](const Values& values) {                           \
      const Map dense = E::encoded(values);                                   \
      Map wide(static_cast<size_t>(rows * apart));                            \
      for (size_t at = 0; at < dense.size(); ++at)                            \
        wide[at / vectors * apart + at % vectors] = dense[at];                \
      return wide;                                                            \
    };                                                                        \
    const Map x = spread(c.x);                                                \
    const BatchNormArguments n{x.data(),                                      \
                               apart,                                         \
                               rows,                                          \
                               vectors,                                       \
                               by_double.mean.data(),                         \
                               by_double.var.data(),                          \
                               c.weight.data(),                               \
                               c.bias.data(),                                 \
                               kEpsilon,                                      \
                               1};                                            \
    const auto over = [&](int64_t of_threads, const auto& kernel) {           \
      const KernelGrid g =                                                    \
          kernel_grid(of_threads, vectors, launch.threads, launch.blocks);    \
      Values sums = room_for_sums(g, space::kWidth);                          \
      std::vector<unsigned> arrived(g.channel_blocks);                        \
      on_grid(g, launch, [&] {                                                \
        kernel(PartialSums{sums.data(), arrived.data()});                     \
      });                                                                     \
      CHECK(std::ranges::all_of(arrived, [](unsigned k) { return k == 0; })); \
    };                                                                        \
    const auto begin = [&](Pooled& p) {                                       \
      p.kept_mean.assign(channels, kKept);                                    \
      p.kept_var.assign(channels, kKept);                                     \
      p.dweight.assign(channels, NAN);                                        \
      p.dbias.assign(channels, NAN);                                          \
      return KeptChannels{p.kept_mean.data(), p.kept_var.data(), kShare,      \
                          nullptr};                                           \
    };                                                                        \
    Found found;                                                              \
    Map whole(static_cast<size_t>(rows * vectors)), dx = whole;               \
    over(rows, [&](const auto&) {                                             \
      space::batch_norm_apply(n, nullptr, {}, whole.data());                  \
    });                                                                       \
    found.whole = E::decoded(whole);                                          \
    const int64_t tiles = int64_t{form.images} * ((form.height + 1) / 2) *    \
                          ((form.width + 1) / 2);                             \
                                                                              \
    Pooled& max = found.max;                                                  \
    const PoolShape of_max = max_shape(form);                                 \
    Map y(static_cast<size_t>(windows_of(of_max) * vectors));                 \
    std::vector<space::Argmax> argmax(y.size());                              \
    const KeptChannels kept = begin(max);                                     \
    over(windows_of(of_max), [&](const auto&) {                               \
      space::batch_norm_max_pool(n, of_max, kept, y.data(), argmax.data());   \
    });                                                                       \
    max.y = E::decoded(y);                                                    \
    for (const auto& of_vector : argmax)                                      \
      for (int i = 0; i < space::kWidth; ++i)                                 \
        max.argmax.push_back(space::argmax_at(of_vector, i));                 \
    const Map dmax = E::encoded(dy.max), dmean = E::encoded(dy.average);      \
    over(tiles, [&](const PartialSums& partial) {                             \
      space::batch_norm_max_pool_sums(n, dmax.data(), argmax.data(), of_max,  \
                                      partial, max.dweight.data(),            \
                                      max.dbias.data());                      \
    });                                                                       \
    over(tiles, [&](const auto&) {                                            \
      space::batch_norm_max_pool_gradient(                                    \
          n, dmax.data(), argmax.data(), of_max, max.dweight.data(),          \
          max.dbias.data(), nullptr, dx.data());                              \
    });                                                                       \
    max.dx = E::decoded(dx);                                                  \
                                                                              \
    Pooled& average = found.average;                                          \
    const PoolShape of_average = average_shape(form);                         \
    Map mean(static_cast<size_t>(windows_of(of_average) * vectors));          \
    if (mean.empty()) return found;                                           \
    const KeptChannels kept_too = begin(average);                             \
    over(windows_of(of_average), [&](const auto&) {                           \
      space::batch_norm_average_pool(n, of_average, kept_too, mean.data());   \
    });                                                                       \
    average.y = E::decoded(mean);                                             \
    Map sum = spread(c.sum);                                                  \
    Values offset(channels), slope(channels);                                 \
    for (const bool adds : {c.adds, true})                                    \
      over(tiles, [&](const PartialSums& partial) {                           \
        space::batch_norm_average_pool_add_up(                                \
            n, dmean.data(), of_average, partial, average.dweight.data(),     \
            average.dbias.data(), {sum.data(), apart}, adds,                  \
            {offset.data(), slope.data()});                                   \
      });                                                                     \
    over(rows, [&](const auto&) {                                             \
      space::batch_norm_corrected({sum.data(), apart}, {x.data(), apart},     \
                                  rows, vectors, by_double.mean.data(),       \
                                  offset.data(), slope.data(), nullptr,       \
                                  dx.data());                                 \
    });                                                                       \
    average.dx = E::decoded(dx);                                              \
    return found;                                                             \
  }

using Element = TypeOfElements<Found (*)(const Case&, const Form&,
                                         const Gradients&, const Launch&)>;

const std::vector<Element>& elements() {
  static const std::vector<Element> all = TYPES_OF_ELEMENTS(FOUND_BY);
  return all;
}

struct Problem {
  Case c;
  Form form;
  Gradients dy;
};

// Halves as x, so that a window has equal ones; some channels are cut
// everywhere, and of others the largest x is the smallest y.
Problem made_problem(Case c, const Form& form, const Element& element,
                     unsigned seed) {
  c.size.rows = int64_t{form.images} * form.height * form.width;
  c.relu = true;
  Problem p{made(c, element.rounded, seed), form, {}};
  for (float& x : p.c.x) x = std::round(2 * x) / 2;
  p.c.weight[2] = -p.c.weight[2];
  p.c.bias[3] = -20;
  std::mt19937 random(seed + 1);
  std::normal_distribution<float> normal(.1F, 1);
  const auto fill = [&](const PoolShape& shape) {
    Values values(static_cast<size_t>(windows_of(shape) * c.size.channels));
    for (float& value : values) value = normal(random);
    return element.rounded(values);
  };
  p.dy = {fill(max_shape(form)), fill(average_shape(form))};
  return p;
}

void check_gradient(const Pooled& found, Case c, const Values& dy,
                    const Values Results::*wanted_dx, double rounding) {
  c.dy = dy;
  const Results wanted = by_definition(c);
  CHECK(difference(found.kept_mean, wanted.kept_mean) < 2e-6);
  CHECK(difference(found.kept_var, wanted.kept_var) < 2e-6);
  // Of one row or two the gradient is the rest of a subtraction.
  if (c.size.rows <= 2) return;
  CHECK(difference(found.dweight, wanted.dweight) < 2e-5);
  CHECK(difference(found.dbias, wanted.dbias) < 2e-5);
  CHECK(difference(found.dx, wanted.*wanted_dx) < rounding + 2e-5);
}

void check_problem(const Problem& p, const Element& element) {
  INFO(element.name << " " << p.form.images << " x " << p.form.height << " x "
                    << p.form.width << " x " << p.c.size.channels
                    << (p.c.adds ? " adds" : "") << ", gap " << p.c.gap);
  const Found found = element.computed(p.c, p.form, p.dy, {});
  const int64_t channels = p.c.size.channels;
  const size_t count = p.c.size.count();
  const Maxima maxima = maxima_of(found.whole, p.form, channels);
  CHECK(found.max.y == maxima.y);
  CHECK(found.max.argmax == maxima.argmax);
  check_gradient(found.max, p.c, max_gradient(p.dy.max, maxima, count),
                 &Results::dx, element.rounding);
  if (p.dy.average.empty()) return;
  CHECK(found.average.y ==
        element.rounded(averages_of(found.whole, p.form, channels)));
  // Rounded three times, as by batch_norm_add_up.
  check_gradient(found.average, p.c,
                 average_gradient(p.dy.average, p.form, channels, count),
                 &Results::readers_dx, 1.5 * element.rounding);
}

}  // namespace

TEST_CASE("kernels pool as their definition says, in BatchNorm's pass") {
  unsigned seed = 1;
  for (const Element& element : elements()) {
    for (const Form form : {Form{2, 8, 8},
                            {2, 7, 10},
                            {3, 9, 5},
                            {2, 2, 2},
                            {2, 3, 3},
                            {5, 1, 1},
                            {2, 1, 6}})
      check_problem(made_problem({.size = {0, 16}}, form, element, ++seed),
                    element);
    for (const bool adds : {false, true})
      for (const int gap : {0, 3})
        check_problem(made_problem({.size = {0, 48}, .adds = adds, .gap = gap},
                                   {2, 5, 7}, element, ++seed),
                      element);
    // 17 vectors: a block has idle threads.
    const int vector = element.rounding < 0x1p-20 ? 4 : 8;
    check_problem(
        made_problem({.size = {0, 17 * vector}}, {1, 5, 6}, element, ++seed),
        element);
  }
}

TEST_CASE("a NaN in a window is its maximum, and spoils the gradient") {
  for (const Element& element : elements()) {
    Problem p = made_problem({.size = {0, 16}}, {1, 5, 4}, element, 3);
    p.c.x[6 * 16 + 5] = NAN;  // of all channel's pixels by mean and variance
    const Found found = element.computed(p.c, p.form, p.dy, {});
    for (size_t window = 0; window < 6; ++window) {
      CHECK(std::isnan(found.max.y[window * 16 + 5]));
      CHECK_FALSE(std::isnan(found.max.y[window * 16 + 6]));
    }
    // The last of a window's.
    CHECK(found.max.argmax[5] == 8);
    CHECK(std::isnan(found.max.dx[5]));
    CHECK(std::isnan(found.average.dx[5]));
    CHECK_FALSE(std::isnan(found.max.dx[6]));
  }
}

TEST_CASE("sums of pooled gradients are equal in any order of blocks",
          "[arithmetic]") {
  for (const Element& element : elements()) {
    const Problem p = made_problem({.size = {0, 8}}, {2, 5, 7}, element, 6);
    const Found wanted = element.computed(p.c, p.form, p.dy, kSmall);
    const auto check = [&](const Launch& launch) {
      const Found found = element.computed(p.c, p.form, p.dy, launch);
      REQUIRE(found.max.y == wanted.max.y);
      REQUIRE(found.max.dweight == wanted.max.dweight);
      REQUIRE(found.max.dbias == wanted.max.dbias);
      REQUIRE(found.max.dx == wanted.max.dx);
      REQUIRE(found.average.dweight == wanted.average.dweight);
      REQUIRE(found.average.dx == wanted.average.dx);
    };
    Launch launch = kSmall;
    launch.backwards = true;
    check(launch);
    for (unsigned seed = 0; seed < 100; ++seed) {
      INFO(element.name << ", order " << seed);
      launch.at_once = seed;
      check(launch);
    }
  }
}

}  // namespace chexnet
