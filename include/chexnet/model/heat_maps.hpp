// Where a network's score of a finding comes from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chexnet/model/network.hpp"

namespace chexnet {

enum class HeatMapMethod {
  kCam,
  kGradCam,
  kLayerCam,  // layer_cam.hpp; not by heat_maps()
};
// Of a map's values: those of a class activation map are parts of the logit.
constexpr const char* unit_of(HeatMapMethod method) {
  return method == HeatMapMethod::kCam ? "logit" : "";
}

struct HeatMapKind {
  HeatMapMethod method = HeatMapMethod::kLayerCam;
  // Per side, 1, 2 or 4: from so many shifted copies of the input a map with so
  // many times the pixels is put together. Of the last map's methods alone.
  int shifts = 1;
};

struct HeatMaps {
  size_t images = 0, findings = 0;
  int height = 0, width = 0, shifts = 1;
  MapGrid grid;                // of the map's pixels in the input
  std::vector<double> logits;  // [N,K], of the input as it is
  std::vector<float> values;   // [N,K,height,width]
  size_t pixels() const {
    return static_cast<size_t>(height) * static_cast<size_t>(width);
  }
  // Of class activation maps: the logit less the mean of the unshifted map, the
  // classifier's bias.
  double bias(size_t image, size_t finding) const;
  const float* map(size_t image, size_t finding) const {
    return &values[(image * findings + finding) * pixels()];
  }
};

// images: uint8 [N,1,H,W]. The map A [N,C,h,w] that the head averages (7 x 7 of
// 224 pixels) gives
//
//   kCam      sum over c of weight[k,c] * A[n,c]: the mean over its pixels, and
//             the bias, are the logit (Zhou et al., "Learning deep features for
//             discriminative localization", CVPR 2016; CheXNet's figure 1)
//   kGradCam  relu(sum over c of a[c] * A[n,c]), a the mean over pixels of the
//             logit's gradient by A (Selvaraju et al., ICCV 2017)
//
// Where a mean and a linear layer follow, the second is the relu of the first,
// divided by the number of pixels. With shifts, maps of the input moved by 0, 1
// / s, … of a map's pixel, its border repeated, are interleaved ("shift and
// stitch": Long et al., "Fully convolutional networks", CVPR 2015): s * s
// passes. Sums are in double and in one order, so that with the engine's
// features maps do not depend on threads or ranks.
HeatMaps heat_maps(Network& network, const at::Tensor& images,
                   const HeatMapKind& kind);

}  // namespace chexnet
