// The two network families. All that tells one network from another is one row
// of network_spec's table. Names and shapes are torchvision's
// (torchvision.models.densenet, .resnet), so weights travel both ways.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "chexnet/config/choices.hpp"

namespace chexnet {

// Huang et al., CVPR 2017.
struct DenseNetSpec {
  int growth = 32;
  std::array<int, 4> blocks{};  // layers of each dense block
  int stem = 64;                // channels after the first convolution
  int bottleneck = 4;  // 1x1 convolution gives bottleneck * growth channels
};

// He et al., CVPR 2016, bottleneck form with the stride on the 3x3
// (torchvision's v1.5).
struct ResNetSpec {
  std::array<int, 4> blocks{};
};

// The linear layer at the end: its name, and its initial bias.
struct HeadSpec {
  enum class Bias {
    kZero,
    kUniform
  };  // kUniform: as the weight, +-1 / sqrt(features)
  std::string name;
  Bias bias = Bias::kZero;
};

struct NetworkSpec {
  std::string arch;  // torchvision's name
  std::variant<DenseNetSpec, ResNetSpec> family;
  HeadSpec head;
};

// A network's parts in the order of forward: the stem, four blocks (of a
// DenseNet each with the transition after it, and the last with the last norm;
// of a ResNet its stages), the classifier head.
inline constexpr int kStemPart = 0, kHeadPart = 5;
// How many of them are frozen, from the stem on.
constexpr int frozen_parts(FrozenPart until) { return static_cast<int>(until); }
static_assert(frozen_parts(FrozenPart::kBackbone) == kHeadPart);

NetworkSpec network_spec(Architecture arch);
// By torchvision's name. ConfigError when it is not known.
NetworkSpec network_spec(const std::string& arch);

// Side of the last map of an input of `side` x `side` pixels.
int last_map_side(const NetworkSpec& spec, int side);
// Side of the smallest square that leaves a pixel for the last layer.
int smallest_input(const NetworkSpec& spec);

// Multiply-adds of a forward pass of one RGB image of `side` x `side` pixels
// through the network as published, without the head; of its parts from
// `first_part` on.
double forward_multiply_adds(const NetworkSpec& spec, int side,
                             int first_part = kStemPart);

// Where the last map is: the center of its pixel i, along either side, in
// pixels of the input (whose first pixel is centered at 0.5). Windows that
// halve a side by stride lie around an even pixel, pools of 2 x 2 between two
// pixels; so a ResNet's map is half of its pixel further left and above than
// tiles of the input would be.
struct MapGrid {
  double first = 0, step = 1;
};
MapGrid last_map_grid(const NetworkSpec& spec);
// Of the last map whose pixel is 8 of the input's: the output of a DenseNet's
// second block, or of a ResNet's second stage.
MapGrid middle_map_grid(const NetworkSpec& spec);

}  // namespace chexnet
