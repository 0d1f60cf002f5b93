// 7x7 convolution of stride 2 on the gray image, BatchNorm, ReLU, 3x3 max-pool
// of stride 2: the first layers of both families. See kernels/stem.hpp for how
// three channels become one.
#pragma once

#include <array>
#include <vector>

#include "norm.hpp"

namespace chexnet {

// x_c = (gray / 255 - mean[c]) / std[c]
struct Normalization {
  std::array<double, 3> mean{}, std{};
};
Normalization normalization_of(const std::vector<double>& mean,
                               const std::vector<double>& std);

template <class S>
class Stem {
 public:
  using A = Accumulator<S>;
  static constexpr int kChannels = 64;

  Stem(Build<S>& build, const std::string& convolution, const std::string& norm,
       int images, int size, const Normalization& normalization);

  MapShape output_shape() const { return pooled_; }
  // images: uint8 [images][size][size], needed again in backward. Returns the
  // output's sums (null values unless run.sums()).
  PartSums forward(const Pass<S>& run, const uint8_t* images, S* out,
                   int64_t pitch) const;
  // dy: the final gradient of the output.
  void backward(const Pass<S>& run, const uint8_t* images,
                const GradientMap<S>& dy) const;

 private:
  struct Space;
  Space space(std::byte* region, int threads) const;
  int64_t padded_elements() const;
  int64_t places() const {  // of the two axes, times the channels
    return static_cast<int64_t>(taps_.size() * taps_.size()) * kChannels;
  }
  int64_t first_place(int y) const {  // of a row, times the channels
    return int64_t{place_[static_cast<size_t>(y)]} *
           static_cast<int64_t>(taps_.size()) * kChannels;
  }
  int64_t image_elements() const {  // of the convolution's output
    return int64_t{conv_.height} * conv_.width * kChannels;
  }
  void pad(const uint8_t* image, A* to) const;
  void pad_pairs(const uint8_t* image, A* to) const;
  void pack(int pair, const Space& space) const;
  void pack_constants(int output, const double (&inside)[7][7],
                      A* constants) const;
  void write_gradient(const Pass<S>& run, const Space& space) const;

  MapShape input_, conv_, pooled_;
  int64_t row_;  // values between two pairs of rows of the padded image
  // Along one axis (images are square): the taps inside the image, for each
  // class of outputs (stem.cpp); and the classes of all outputs.
  struct Taps {
    int first, last;
    bool operator==(const Taps&) const = default;
  };
  std::vector<Taps> taps_;
  std::vector<uint8_t> place_;
  std::array<double, 3> gain_, offset_;
  ChannelStatistics<S> statistics_;
  Norm<S> norm_;
  // Plan buffers of training: the convolution's output; the pool's choices.
  int raw_ = -1, chosen_ = -1;
  const A* weight_;  // [64][3][7][7]
  A* gradient_;
  int64_t end_;
};

}  // namespace chexnet
