// Where a network's score of a finding comes from, on a map four times as fine
// as the last one.
//
// A pixel of the last map sees the whole picture, and nothing in training ties
// it to what lies at its position: the map of a trained network may be highest
// beside what raised the score. The middle map (middle_map_grid) sees less, so
// what is high there is there. LayerCAM (Jiang et al., "LayerCAM: exploring
// hierarchical class activation maps for localization", IEEE TIP 2021) is, with
// A the middle map [C,h,w] and G the gradient of the finding's logit by it,
//
//   relu(sum over c of relu(G[c]) * A[c])
//
// A gradient of one pixel is noisy: before the last relu the map is smoothed by
// a Gaussian, of kLayerCamSmoothing of its width.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "chexnet/model/network.hpp"

namespace chexnet {

// 3 pixels of the map of 28 that an input of 224 has: the same part of the
// picture for every input.
inline constexpr double kLayerCamSmoothing = 3.0 / 28;

// By ATen's operators and autograd, whoever computes the network elsewhere, so
// the last bits depend on the number of threads. Refers to the network, whose
// weights stay as they are meanwhile. One thread.
class LayerCam {
 public:
  explicit LayerCam(Network& network);
  ~LayerCam();

  // images: uint8 [N,1,H,W], of which map() then tells; those before are
  // forgotten.
  void compute(const at::Tensor& images);
  int height() const;
  int width() const;
  MapGrid grid() const;  // of the map's pixels in the input
  // [height, width]. Cheapest image by image.
  std::vector<float> map(size_t image, size_t finding);

  // The inputs of maps: A of all images [N,C,h,w], and G [C,h,w].
  const at::Tensor& middle() const;
  at::Tensor gradient(size_t image, size_t finding);

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

// Along rows and columns by a Gaussian of `sigma` pixels, the border repeated.
std::vector<float> smoothed(const std::vector<float>& values, int width,
                            int height, double sigma);

}  // namespace chexnet
