#include "stem.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "chexnet/comm/half.hpp"

// A padded image has gray - 128 inside and a border of 3 pixels of zeros. Two
// rows lie side by side, two pixels of each at a time:
//
//     row 0: 0 0   row 1: 0 0   row 0: 0 g   row 1: 0 g   row 0: g g   ...
//
// so the 7 x 7 window of an output, read as 8 x 8 with zeros for weights, is
// four blocks of 16 values, `row_` apart, and outputs of stride 2 begin 4
// values apart. In bf16 pairs a unit is the two pixels of a row.
//
// What is added is the same for all outputs whose taps are all inside; along
// the borders it differs. An output has a class (`place`) along its row and one
// along its column: which taps of the kernel are inside the image. There are
// five (seven taps, two outputs at the beginning and at most two at the end),
// fewer or others for tiny images.
//
// Forward, the convolution's output is kept, then normalized and pooled in a
// second pass, because the statistics need the whole batch. The pool notes
// which of its 9 pixels it chose, in a byte. Backward, gradients are scattered
// to the chosen pixels one row at a time; twice, as BatchNorm's sums must be
// complete before the first gradient is.
namespace chexnet {
namespace {

constexpr int kKernel = 7, kBorder = 3;
constexpr double kMiddle = 128;                 // what is taken from gray
constexpr int kWeights = kStemBlocks * kBlock;  // of one output, padded

// Of the tap in row y and column x of the kernel, in an output's kWeights.
constexpr int position(int y, int x) {
  return y / 2 * kBlock + x / 2 * 4 + y % 2 * 2 + x % 2;
}

}  // namespace

Normalization normalization_of(const std::vector<double>& mean,
                               const std::vector<double>& std) {
  assert(mean.size() >= 3 && std.size() >= 3);
  Normalization n;
  std::copy_n(mean.begin(), 3, n.mean.begin());
  std::copy_n(std.begin(), 3, n.std.begin());
  return n;
}

template <class S>
struct Stem<S>::Space {
  A* packed = nullptr;
  A* constants = nullptr;    // [place in y][place in x][64]
  A* weights = nullptr;      // [part][64][4][16]
  double* inside = nullptr;  // [part][place in y][place in x][64]
  PartSums sums;
  A* threads = nullptr;
  S* maps = nullptr;  // of each thread, the convolution's output of an image
  int64_t image = 0, panel = 0;
  size_t bytes = 0;
  int64_t thread() const { return image + panel; }
};

template <class S>
Stem<S>::Stem(Build<S>& build, const std::string& convolution,
              const std::string& norm, int images, int size,
              const Normalization& normalization)
    : input_{images, size, size},
      conv_(input_.halved()),
      pooled_(conv_.halved()),
      row_(int64_t{4} * (conv_.width + kBorder)),
      gain_{},
      offset_{},
      statistics_(build, kChannels),
      norm_(build, norm, kChannels) {
  assert(images > 0 && size > 0);
  for (int o = 0; o < conv_.width; ++o) {
    const int begin = 2 * o - kBorder;  // of the window, in the image
    const Taps taps{std::max(0, -begin), std::min(kKernel, size - begin)};
    const auto found = std::ranges::find(taps_, taps);
    place_.push_back(static_cast<uint8_t>(found - taps_.begin()));
    if (found == taps_.end()) taps_.push_back(taps);
  }
  for (size_t c = 0; c < 3; ++c) {
    assert(normalization.std[c] > 0);
    gain_[c] = 1 / (255.0 * normalization.std[c]);
    offset_[c] = -normalization.mean[c] / normalization.std[c];
  }
  if (build.training) {
    raw_ = build.add_saved(conv_.bytes<S>(kChannels));
    chosen_ = build.add_saved(pooled_.bytes<uint8_t>(kChannels));
  }
  const int64_t at = build.parameters.parameter(convolution + ".weight");
  weight_ = static_cast<const A*>(build.parameters.values) + at;
  gradient_ = static_cast<A*>(build.parameters.gradients) + at;
  end_ = at + int64_t{kChannels} * 3 * kKernel * kKernel;
  build.need_workspace(space(nullptr, build.threads).bytes);
}

template <class S>
int64_t Stem<S>::padded_elements() const {
  return row_ * (conv_.height + kBorder) + kBlock;
}

template <class S>
auto Stem<S>::space(std::byte* region, int threads) const -> Space {
  LinearAllocator allocator(region);
  Space s;
  const int parts = std::min(input_.images, kForwardParts);
  s.packed = allocator.take<A>(int64_t{kChannels} * kWeights);
  s.constants = allocator.take<A>(places());
  s.weights = allocator.take<A>(int64_t{kChannels} * kWeights * parts);
  s.inside = allocator.take<double>(places() * parts);
  s.sums = PartSums::in(allocator, parts, kChannels);
  s.image = (padded_elements() + kBlock - 1) / kBlock * kBlock;
  s.panel = int64_t{kChannels} * conv_.width;
  s.threads = allocator.take<A>(s.thread() * threads);
  if (raw_ < 0) s.maps = allocator.take<S>(image_elements() * threads);
  s.bytes = allocator.used();
  return s;
}

template <class S>
void Stem<S>::pad(const uint8_t* image, A* to) const {
  std::fill_n(to, padded_elements(), A(0));
  for (int y = 0; y < input_.height; ++y) {
    A* row = to + (y + kBorder) / 2 * row_ + (y + kBorder) % 2 * 2;
    const uint8_t* from = image + static_cast<int64_t>(y) * input_.width;
    for (int x = 0; x < input_.width; ++x) {
      const int at = x + kBorder;
      row[at / 2 * 4 + at % 2] =
          static_cast<A>(from[x]) - static_cast<A>(kMiddle);
    }
  }
}

template <class S>
void Stem<S>::pad_pairs(const uint8_t* image, A* to) const {
  std::fill_n(to, padded_elements() / 2, A(0));
  if constexpr (sizeof(A) == sizeof(uint32_t)) {
    // Of eight bits, so the lower half of the float is zero.
    const auto half = [](uint8_t gray) {
      return std::bit_cast<uint32_t>(static_cast<float>(gray) -
                                     static_cast<float>(kMiddle)) >>
             16;
    };
    const int width = input_.width;
    for (int y = 0; y < input_.height; ++y) {
      A* row = to + (y + kBorder) / 2 * (row_ / 2) + (y + kBorder) % 2;
      const uint8_t* from = image + static_cast<int64_t>(y) * width;
      // Pixel 0 is in column 3, the second of a pair; a pair that begins in
      // column c is c units from its row's first.
      row[2] = std::bit_cast<float>(half(from[0]) << 16);
      for (int x = 1; x < width; x += 2) {
        const uint32_t second = x + 1 < width ? half(from[x + 1]) : 0;
        row[x + kBorder] = std::bit_cast<float>(half(from[x]) | second << 16);
      }
    }
  }
}

// [64 / 32][4][a block's units][32]
template <class S>
void Stem<S>::pack(int pair, const Space& space) const {
  for (int o = 0; o < kChannels; ++o) {
    double gray[kWeights] = {}, inside[kKernel][kKernel];
    for (int y = 0; y < kKernel; ++y)
      for (int x = 0; x < kKernel; ++x) {
        double offset = 0, gain = 0;
        for (int c = 0; c < 3; ++c) {
          const double w = weight_[((o * 3 + c) * kKernel + y) * kKernel + x];
          gain += gain_[static_cast<size_t>(c)] * w;
          offset += offset_[static_cast<size_t>(c)] * w;
        }
        gray[position(y, x)] = gain;
        inside[y][x] = offset + kMiddle * gain;
      }
    A* at = space.packed + int64_t{o} / kOutputs * kOutputs * kWeights / pair +
            o % kOutputs;
    for (int i = 0; i < kWeights; i += pair, at += kOutputs)
      if (pair == 1)
        *at = static_cast<A>(gray[i]);
      else if constexpr (sizeof(A) == sizeof(uint32_t))
        *at = bf16_pair(static_cast<float>(gray[i]),
                        static_cast<float>(gray[i + 1]));
    pack_constants(o, inside, space.constants);
  }
}

template <class S>
void Stem<S>::pack_constants(int output, const double (&inside)[7][7],
                             A* constants) const {
  for (size_t i = 0; i < taps_.size(); ++i)
    for (size_t j = 0; j < taps_.size(); ++j) {
      double sum = 0;
      for (int y = taps_[i].first; y < taps_[i].last; ++y)
        for (int x = taps_[j].first; x < taps_[j].last; ++x)
          sum += inside[y][x];
      constants[(i * taps_.size() + j) * kChannels +
                static_cast<size_t>(output)] = static_cast<A>(sum);
    }
}

template <class S>
PartSums Stem<S>::forward(const Pass<S>& run, const uint8_t* images, S* out,
                          int64_t pitch) const {
  const PassTimer timer(
      run.layer_times, PassKind::kStemForward,
      2.0 * static_cast<double>(conv_.pixels()) * kChannels * 3 * kKernel *
          kKernel,
      static_cast<double>(2 * conv_.pixels() + pooled_.pixels()) * kChannels *
          sizeof(S));
  const Space space = this->space(run.workspace, run.thread_pool.size());
  pack(run.kernels.pair, space);
  const Cut cut{input_.images, space.sums.parts};
  const int64_t row = row_ / run.kernels.pair;
  // `map`: the convolution's output of an image.
  const auto convolve = [&](S* map, int y, const A* padded, Moments moments) {
    run.kernels.stem_row(padded + row * y, row, conv_.width, space.packed,
                         kChannels,
                         {space.constants + first_place(y), place_.data()},
                         map + int64_t{y} * conv_.width * kChannels, moments);
  };
  const auto pool = [&](int64_t i, const S* map, int y, uint8_t* chosen,
                        Moments moments) {
    const int64_t first = (i * pooled_.height + y) * pooled_.width;
    run.kernels.stem_pool_row(
        norm_.map(run, map, kChannels), conv_.height, conv_.width, y,
        out + first * pitch, pitch,
        chosen == nullptr ? nullptr : chosen + first * kChannels, moments);
  };
  const auto padded_of = [&](int64_t i, int thread) {
    A* padded = space.threads + thread * space.thread();
    const uint8_t* image = images + i * input_.height * input_.width;
    if (run.kernels.pair == 2)
      pad_pairs(image, padded);
    else
      pad(image, padded);
    return padded;
  };
  if (!run.training) {
    norm_.prepare(run, statistics_, 0);
    const Cut tasks{input_.images, run.sums() ? cut.parts : input_.images};
    run.thread_pool.run(tasks.parts, [&](int part, int thread) {
      if (run.sums()) space.sums.clear(part);
      const Moments moments = run.sums() ? space.sums.moments(part) : Moments{};
      for (int64_t i = tasks.begin(part); i < tasks.end(part); ++i) {
        const A* padded = padded_of(i, thread);
        // Nobody needs it again: one that stays in the caches, if there is one.
        S* map = raw_ < 0 ? space.maps + thread * image_elements()
                          : run.template buffer<S>(raw_) + i * image_elements();
        int done = 0;  // rows; a pooled one reads 2 * y - 1 .. 2 * y + 1
        for (int y = 0; y < pooled_.height; ++y) {
          for (; done < std::min(conv_.height, 2 * y + 2); ++done)
            convolve(map, done, padded, {});
          pool(i, map, y, nullptr, moments);
        }
      }
    });
    return run.sums() ? space.sums : PartSums{};
  }
  S* raw = run.template buffer<S>(raw_);
  run.thread_pool.run(cut.parts, [&](int part, int thread) {
    space.sums.clear(part);
    for (int64_t i = cut.begin(part); i < cut.end(part); ++i) {
      const A* padded = padded_of(i, thread);
      for (int y = 0; y < conv_.height; ++y)
        convolve(raw + i * image_elements(), y, padded,
                 space.sums.moments(part));
    }
  });
  const double count = pixel_count(run, conv_);
  statistics_.set(run, space.sums, 0, count);
  norm_.prepare(run, statistics_, count);
  run.thread_pool.run(cut.parts, [&](int part, int) {
    space.sums.clear(part);
    for (int64_t i = cut.begin(part); i < cut.end(part); ++i)
      for (int y = 0; y < pooled_.height; ++y)
        pool(i, raw + i * image_elements(), y,
             run.template buffer<uint8_t>(chosen_), space.sums.moments(part));
  });
  return space.sums;
}

template <class S>
void Stem<S>::backward(const Pass<S>& run, const uint8_t* images,
                       const GradientMap<S>& dy) const {
  const PassTimer timer(
      run.layer_times, PassKind::kStemBackward,
      2.0 * static_cast<double>(conv_.pixels()) * kChannels * 3 * kKernel *
          kKernel,
      static_cast<double>(2 * conv_.pixels() + 4 * pooled_.pixels()) *
          kChannels * sizeof(S));
  assert(run.training && dy.channels == kChannels);
  const Space space = this->space(run.workspace, run.thread_pool.size());
  const S* raw = run.template buffer<S>(raw_);
  const uint8_t* chosen = run.template buffer<uint8_t>(chosen_);
  const Cut cut{input_.images, space.sums.parts};
  const int64_t in_pooled = int64_t{pooled_.height} * pooled_.width;
  // Each row of the gradient at the pool's input is made twice, first for
  // BatchNorm's sums, then for the weights: cheaper than keeping a map four
  // times the size of the pooled one.
  const auto scatter = [&](int64_t i, int y, Panel<A> panel) {
    run.kernels.stem_scatter_row(dy, i * in_pooled, conv_.height, conv_.width,
                                 y, chosen + i * in_pooled * kChannels, panel);
    return norm_.map(
        run, raw + i * image_elements() + int64_t{y} * conv_.width * kChannels,
        kChannels);
  };
  run.thread_pool.run(cut.parts, [&](int part, int thread) {
    const Panel<A> panel{space.threads + thread * space.thread() + space.image,
                         conv_.width};
    space.sums.clear(part);
    for (int64_t i = cut.begin(part); i < cut.end(part); ++i)
      for (int y = 0; y < conv_.height; ++y)
        run.kernels.stem_sums_row(
            panel, scatter(i, y, panel), statistics_.mean(run), conv_.width,
            space.sums.first(part), space.sums.second(part));
  });
  space.sums.combine();
  alignas(64) A a[kChannels], b[kChannels], c[kChannels];
  norm_.backward_own(run, space.sums, statistics_, pixel_count(run, conv_), a,
                     b, c);
  run.thread_pool.run(cut.parts, [&](int part, int thread) {
    A* padded = space.threads + thread * space.thread();
    const Panel<A> panel{padded + space.image, conv_.width};
    A* weights = space.weights + int64_t{part} * kChannels * kWeights;
    double* inside = space.inside + part * places();
    std::fill_n(weights, kChannels * kWeights, A(0));
    std::fill_n(inside, places(), 0.0);
    for (int64_t i = cut.begin(part); i < cut.end(part); ++i) {
      pad(images + i * input_.height * input_.width, padded);
      for (int y = 0; y < conv_.height; ++y) {
        run.kernels.stem_gradient_row(panel, scatter(i, y, panel), a, b, c,
                                      conv_.width, place_.data(),
                                      inside + first_place(y));
        run.kernels.stem_weight_gradient_row(panel, padded + row_ * y, row_,
                                             conv_.width, kChannels, weights);
      }
    }
  });
  write_gradient(run, space);
}

// Back to three channels: dW_c = gain_c * dw(gray) + offset_c * dw(inside),
// dw(inside) being the sum of dy where the tap is inside.
template <class S>
void Stem<S>::write_gradient(const Pass<S>& run, const Space& space) const {
  for (int p = 1; p < space.sums.parts; ++p) {
    for (int64_t i = 0; i < places(); ++i)
      space.inside[i] += space.inside[p * places() + i];
  }
  const auto dw_inside = [&](int o, int y, int x) {
    double sum = 0;
    for (size_t i = 0; i < taps_.size(); ++i)
      for (size_t j = 0; j < taps_.size(); ++j)
        if (y >= taps_[i].first && y < taps_[i].last && x >= taps_[j].first &&
            x < taps_[j].last)
          sum += space.inside[(i * taps_.size() + j) * kChannels +
                              static_cast<size_t>(o)];
    return sum;
  };
  for (int o = 0; o < kChannels; ++o)
    for (int y = 0; y < kKernel; ++y)
      for (int x = 0; x < kKernel; ++x) {
        const double inside = dw_inside(o, y, x);
        double gray = kMiddle * inside;
        for (int p = 0; p < space.sums.parts; ++p)
          gray += space.weights[(int64_t{p} * kChannels + o) * kWeights +
                                position(y, x)];
        for (int c = 0; c < 3; ++c) {
          A& to = gradient_[((o * 3 + c) * kKernel + y) * kKernel + x];
          to = static_cast<A>(
              (run.micro_batch.first() ? 0.0 : static_cast<double>(to)) +
              gain_[static_cast<size_t>(c)] * gray +
              offset_[static_cast<size_t>(c)] * inside);
        }
      }
  run.micro_batch.written(end_);
}

template class Stem<float>;
template class Stem<Bf16>;
template class Stem<double>;

}  // namespace chexnet
