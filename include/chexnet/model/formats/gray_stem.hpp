// The first convolution of TorchXRayVision's networks (Cohen et al., MIDL 2022)
// sees one channel, pixels from -1024 to 1024; ours sees gray three times,
// each with a mean and a deviation. With p = gray / 255:
//
//   ours    x[c] = (p - mean[c]) / std[c]      theirs  z = 1024 (2 p - 1)
//
// Both are linear in p, so either can be expressed by the other, and the
// constant goes into the running mean of the next BatchNorm. The zeros around
// the picture are another gray in each, so the outermost two rows and columns
// of the first maps differ.
#pragma once

#include <array>
#include <vector>

#include "chexnet/model/formats/float_tensors.hpp"

namespace chexnet {

struct InputScale {
  std::vector<double> mean = {0.485, 0.456, 0.406},
                      std = {0.229, 0.224, 0.225};  // of each channel
};

// A first convolution and the BatchNorm after it, by torchvision's names: of
// DenseNets and of ResNets.
struct StemNames {
  const char *weight, *running_mean;
};
inline constexpr std::array<StemNames, 2> kStems = {
    {{"features.conv0.weight", "features.norm0.running_mean"},
     {"conv1.weight", "bn1.running_mean"}}};

struct StemWeights {
  FloatTensor weight;        // [out, in, height, width]
  FloatTensor running_mean;  // [out], of the next BatchNorm
};

// in 3 -> in 1.
StemWeights to_gray_stem(const StemWeights& stem, const InputScale& scale);
// in 1 -> in 3.
StemWeights from_gray_stem(const StemWeights& stem, const InputScale& scale);

}  // namespace chexnet
