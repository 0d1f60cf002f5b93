#include <cmath>
#include <optional>
#include <vector>

#include "chexnet/comm/half.hpp"
#include "model/engine/conv3.hpp"
#include "model/engine/pointwise.hpp"
#include "support/catch.hpp"
#include "support/engine_bed.hpp"

using namespace chexnet;

namespace {

std::vector<double> noise(size_t n, uint64_t stream) {
  Random random(9, Purpose::kTest, stream);
  std::vector<double> values(n);
  for (double& v : values) v = random.normal();
  return values;
}

template <class S>
S stored(double value) {
  if constexpr (sizeof(S) == 2)
    return {to_bf16(static_cast<float>(value))};
  else
    return static_cast<S>(value);
}
template <class S>
double value_of(S value) {
  if constexpr (sizeof(S) == 2)
    return from_bf16(value.bits);
  else
    return value;
}

template <class S>
std::vector<S> all_stored(const std::vector<double>& from) {
  std::vector<S> to;
  to.reserve(from.size());
  for (const double v : from) to.push_back(stored<S>(v));
  return to;
}
template <class S>
std::vector<double> values_of(const std::vector<S>& from) {
  std::vector<double> to;
  to.reserve(from.size());
  for (const S v : from) to.push_back(value_of(v));
  return to;
}

// Everything a convolution's forward and backward give.
struct Outcome {
  std::vector<double> out, dx, dw, moments, sums;
};

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 1e-300;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

struct Problem {
  int kernel, in, out, stride;
  MapShape shape;
};

// By the definition: y = relu(scale * x + shift), out = sum w y, and its
// derivatives.
Outcome by_definition(const Problem& p, const std::vector<double>& x,
                      const std::vector<double>& scale,
                      const std::vector<double>& shift,
                      const std::vector<double>& dy,
                      const std::vector<double>& w) {
  const MapShape o = p.stride == 1 ? p.shape : p.shape.halved();
  const int taps = p.kernel * p.kernel, border = p.kernel / 2;
  const auto in = static_cast<size_t>(p.in), out = static_cast<size_t>(p.out);
  Outcome r;
  r.out.resize(static_cast<size_t>(o.pixels()) * out);
  r.dx.resize(x.size());
  r.dw.resize(w.size());
  r.moments.resize(2 * out);
  r.sums.resize(2 * in);
  std::vector<double> dvalue(x.size());
  const auto value = [&](size_t i) {
    return std::max(0.0, scale[i % in] * x[i] + shift[i % in]);
  };
  for (int n = 0; n < o.images; ++n)
    for (int oy = 0; oy < o.height; ++oy)
      for (int ox = 0; ox < o.width; ++ox) {
        const auto pixel =
            static_cast<size_t>((n * o.height + oy) * o.width + ox);
        for (int tap = 0; tap < taps; ++tap) {
          const int y = p.stride * oy + tap / p.kernel - border,
                    xx = p.stride * ox + tap % p.kernel - border;
          if (y < 0 || xx < 0 || y >= p.shape.height || xx >= p.shape.width)
            continue;
          const auto from = static_cast<size_t>(
                                (n * p.shape.height + y) * p.shape.width + xx) *
                            in;
          for (size_t k = 0; k < out; ++k)
            for (size_t c = 0; c < in; ++c) {
              const size_t at = (k * in + c) * static_cast<size_t>(taps) +
                                static_cast<size_t>(tap);
              r.out[pixel * out + k] += w[at] * value(from + c);
              r.dw[at] += dy[pixel * out + k] * value(from + c);
              dvalue[from + c] += dy[pixel * out + k] * w[at];
            }
        }
      }
  for (size_t i = 0; i < r.out.size(); ++i) {
    r.moments[i % out] += r.out[i];
    r.moments[out + i % out] += r.out[i] * r.out[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double open = value(i) > 0 ? dvalue[i] : 0;
    r.dx[i] = 2 * open;  // the multiplier
    r.sums[i % in] += open;
    r.sums[in + i % in] += open * (x[i] - 0.25);
  }
  return r;
}

template <class S>
Outcome by_engine(const Problem& p, const std::vector<double>& x,
                  const std::vector<double>& scale,
                  const std::vector<double>& shift,
                  const std::vector<double>& dy, std::vector<double>& w,
                  int threads, bool winograd, const std::string& set) {
  using A = Accumulator<S>;
  TestBed<S> bed({{"c.weight", p.in * p.out * p.kernel * p.kernel}}, {},
                 threads, winograd, set);
  w.assign(bed.values.begin(), bed.values.end());
  const auto as = [](const std::vector<double>& from) {
    std::vector<A> to(from.begin(), from.end());
    return to;
  };
  const std::vector<A> own_scale = as(scale), own_shift = as(shift),
                       mean(static_cast<size_t>(p.in), A(0.25)),
                       twice(static_cast<size_t>(p.in), A(2)),
                       ones(static_cast<size_t>(p.out), A(1)),
                       zeros(static_cast<size_t>(p.out), A(0));
  const std::vector<S> map = all_stored<S>(x), gradient = all_stored<S>(dy);
  std::vector<S> out(gradient.size()), dx(map.size());
  const FeatureMap<S> in{map.data(), p.in, p.in, own_scale.data(),
                         own_shift.data()};
  const GradientMap<S> d{gradient.data(), p.out,       gradient.data(),
                         p.out,           p.out,       ones.data(),
                         zeros.data(),    zeros.data()};
  GradientEpilogue<S> epilogue;
  epilogue.map = in;
  epilogue.mean = mean.data();
  epilogue.d = dx.data();
  epilogue.d_pitch = p.in;
  epilogue.multiplier = twice.data();
  Outcome r;
  const auto compute = [&](const auto& convolution) {
    const Pass<S> run = bed.run();
    PartSums sums = convolution.forward(run, in, out.data(), p.out);
    sums.combine();
    r.moments.assign(sums.values, sums.values + 2 * p.out);
    sums = convolution.backward(run, d, epilogue);
    r.sums.assign(sums.values, sums.values + 2 * p.in);
  };
  if (p.kernel == 3)
    compute(Convolution3x3<S>(*bed.build, "c", p.in, p.out, p.shape, p.stride));
  else
    compute(PointwiseConvolution<S>(
        *bed.build, "c", p.in, p.out, p.shape,
        p.stride == 1 ? Reading::kEach : Reading::kSecond));
  r.out = values_of(out);
  r.dx = values_of(dx);
  r.dw.assign(bed.gradients.begin(), bed.gradients.end());
  return r;
}

const std::vector<Problem> kProblems = {
    {1, 64, 32, 1, {3, 7, 5}},
    {1, 32, 96, 1, {2, 20, 20}},
    {1, 32, 64, 2, {2, 9, 8}},
    {3, 64, 32, 1, {2, 9, 7}},
    {3, 32, 64, 1, {9, 2, 2}},
    {3, 32, 32, 1, {1, 17, 30}},
    {3, 32, 32, 2, {2, 9, 10}},
    {3, 64, 32, 2, {3, 7, 7}},
    {3, 32, 32, 1, {1, 1, 1}},
    // Several images of a band, the last one alone; of two rows at once.
    {3, 32, 32, 1, {17, 7, 7}},
    {3, 32, 32, 2, {17, 7, 5}},
    // Several chunks of Winograd's tiles; a slice of channels that is not
    // whole.
    {3, 96, 64, 1, {2, 30, 18}},
    // Sums of weights' gradients that leave the caches.
    {3, 256, 256, 1, {4, 2, 2}},
    {1, 512, 256, 1, {3, 9, 9}},
};

void check_convolution(const Problem& p,
                       const std::vector<int>& thread_counts) {
  const MapShape o = p.stride == 1 ? p.shape : p.shape.halved();
  const auto in = static_cast<size_t>(p.in);
  // Exact in each type, so that all see the same ReLUs open.
  const auto exact = [](size_t n, uint64_t stream) {
    return values_of(all_stored<Bf16>(noise(n, stream)));
  };
  const auto x = exact(static_cast<size_t>(p.shape.pixels()) * in, 1),
             scale = noise(in, 2), shift = noise(in, 3),
             dy = exact(static_cast<size_t>(o.pixels() * p.out), 4);
  // Of the first set's weights: all are equal.
  std::optional<Outcome> expected;
  const auto check = [&](const std::string& set, bool winograd, int threads) {
    std::vector<double> w;
    const Outcome found =
        by_engine<double>(p, x, scale, shift, dy, w, threads, winograd, set);
    if (!expected) expected = by_definition(p, x, scale, shift, dy, w);
    INFO(set << " kernel " << p.kernel << " stride " << p.stride << " channels "
             << p.in << " -> " << p.out << " map " << p.shape.images << "x"
             << p.shape.height << "x" << p.shape.width << " winograd "
             << winograd << " threads " << threads);
    CHECK(worst(found.out, expected->out) < 1e-12);
    CHECK(worst(found.dw, expected->dw) < 1e-12);
    CHECK(worst(found.moments, expected->moments) < 1e-12);
    CHECK(worst(found.sums, expected->sums) < 1e-12);
    // A 1x1 convolution of stride 2 leaves the pixels between alone.
    CHECK(worst(found.dx, expected->dx) < 1e-12);
    const Outcome single =
        by_engine<float>(p, x, scale, shift, dy, w, threads, winograd, set);
    CHECK(worst(single.out, expected->out) < 1e-5);
    CHECK(worst(single.dw, expected->dw) < 1e-4);
    const Outcome half =
        by_engine<Bf16>(p, x, scale, shift, dy, w, threads, winograd, set);
    CHECK(worst(half.out, expected->out) < 2e-2);
    CHECK(worst(half.dx, expected->dx) < 2e-2);
    CHECK(worst(half.dw, expected->dw) < 2e-2);
  };
  for (const std::string& set : instruction_sets())
    for (const bool winograd : {false, true})
      for (const int threads : thread_counts) {
        if (winograd && (p.kernel == 1 || p.stride == 2)) continue;
        check(set, winograd, threads);
      }
}

}  // namespace

TEST_CASE(
    "convolutions of the engine are what their definition says, on every "
    "instruction set",
    "[arithmetic]") {
  for (const std::string& set : instruction_sets()) WARN("tested: " << set);
  for (const Problem& p : kProblems) check_convolution(p, {1, 3});
}

TEST_CASE("a convolution of each kind is what its definition says") {
  // For the sanitizers, too.
  for (const Problem& p :
       {Problem{1, 64, 32, 1, {3, 7, 5}}, Problem{3, 64, 32, 1, {2, 9, 7}},
        Problem{3, 32, 32, 2, {2, 9, 10}}})
    check_convolution(p, {3});
}

namespace {

// A map after BatchNorm and ReLU, as a 1x1 convolution leaves it in scoring,
// and a 3x3 one reads it.
template <class S>
std::vector<double> scored(const Problem& p, const std::vector<double>& x,
                           const std::vector<double>& scale,
                           const std::vector<double>& shift,
                           std::vector<double>& w, int threads,
                           const std::string& set,
                           const std::vector<ImageRange>& ranges) {
  using A = Accumulator<S>;
  TestBed<S> bed({{"c.weight", p.in * p.out * p.kernel * p.kernel}}, {},
                 threads, true, set);
  bed.build->training = false;
  w.assign(bed.values.begin(), bed.values.end());
  const std::vector<A> own_scale(scale.begin(), scale.end()),
      own_shift(shift.begin(), shift.end()),
      next_scale(static_cast<size_t>(p.out), A(0.5)),
      next_shift(static_cast<size_t>(p.out), A(0.25));
  std::vector<S> map(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % static_cast<size_t>(p.in);
    map[i] = stored<S>(
        p.kernel == 1 ? x[i] : std::max(0.0, scale[c] * x[i] + shift[c]));
  }
  const MapShape o = p.stride == 1 ? p.shape : p.shape.halved();
  std::vector<S> out(static_cast<size_t>(o.pixels() * p.out), stored<S>(-9));
  const auto compute = [&](const auto& forward) {
    Pass<S> run = bed.run();
    for (const ImageRange& range : ranges) {
      forward(run, range);
      run.pack = false;
    }
  };
  if (p.kernel == 3) {
    const Convolution3x3<S> c(*bed.build, "c", p.in, p.out, p.shape, p.stride);
    compute([&](const Pass<S>& run, ImageRange range) {
      c.forward_normalized(run, map.data(), p.in, out.data(), p.out, range);
    });
  } else {
    const PointwiseConvolution<S> c(
        *bed.build, "c", p.in, p.out, p.shape,
        p.stride == 1 ? Reading::kEach : Reading::kSecond);
    const FeatureMap<S> in{map.data(), p.in, p.in, own_scale.data(),
                           own_shift.data()};
    compute([&](const Pass<S>& run, ImageRange range) {
      c.forward_normalized(run, in, out.data(), p.out, next_scale.data(),
                           next_shift.data(), range);
    });
  }
  return values_of(out);
}

// All sizes of the last tile of a row and of a column, maps of less than one
// tile, and several chunks.
const std::vector<Problem> kScoredProblems = {
    {1, 64, 32, 1, {3, 7, 5}},   {1, 32, 128, 1, {3, 20, 20}},
    {1, 32, 64, 2, {2, 9, 8}},   {3, 32, 32, 1, {3, 1, 1}},
    {3, 64, 32, 1, {4, 9, 7}},   {3, 32, 64, 1, {9, 2, 3}},
    {3, 32, 32, 1, {2, 17, 30}}, {3, 32, 32, 1, {3, 24, 28}},
    {3, 32, 32, 2, {2, 9, 10}},
};

template <class S>
void check_scored(const Problem& p, double most) {
  const auto in = static_cast<size_t>(p.in);
  const MapShape o = p.stride == 1 ? p.shape : p.shape.halved();
  const auto x = noise(static_cast<size_t>(p.shape.pixels()) * in, 1),
             scale = noise(in, 2), shift = noise(in, 3);
  const std::vector<double> dy(static_cast<size_t>(o.pixels() * p.out));
  const int images = p.shape.images, half = images / 2;
  std::vector<double> expected;  // of the first set's weights: all are equal
  for (const std::string& set : instruction_sets()) {
    std::vector<double> w;
    const auto found = scored<S>(p, x, scale, shift, w, 1, set, {{0, images}});
    if (expected.empty()) {
      expected = by_definition(p, x, scale, shift, dy, w).out;
      if (p.kernel == 1)
        for (double& v : expected) v = std::max(0.0, 0.5 * v + 0.25);
    }
    INFO(set << " kernel " << p.kernel << " stride " << p.stride << " channels "
             << p.in << " -> " << p.out << " map " << images << "x"
             << p.shape.height << "x" << p.shape.width);
    CHECK(worst(found, expected) < most);
    for (const int threads : {2, 3})
      CHECK(scored<S>(p, x, scale, shift, w, threads, set,
                      {{0, half}, {half, images - half}}) == found);
  }
}

}  // namespace

TEST_CASE(
    "convolutions for scoring are what their definition says, whatever the "
    "threads and the cut of the batch",
    "[arithmetic]") {
  for (const Problem& p : kScoredProblems) {
    check_scored<double>(p, 1e-12);
    check_scored<float>(p, 5e-6);
    check_scored<Bf16>(p, 2e-2);
  }
}

TEST_CASE("a convolution of each kind scores as its definition says") {
  // For the sanitizers, too.
  for (const Problem& p :
       {Problem{1, 64, 32, 1, {3, 7, 5}}, Problem{3, 64, 32, 1, {4, 9, 7}}})
    check_scored<float>(p, 5e-6);
}
