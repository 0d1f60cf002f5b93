// How fast a network scores images: forward alone, on synthetic images in the
// host's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "chexnet/model/network.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/layer_report.hpp"

namespace chexnet {

// The references must outlive it.
class InferBench {
 public:
  static constexpr int kWarmUp = 3;  // passes before the first time

  InferBench(Network& network, const Device& device, int64_t batch,
             int64_t size);
  // Milliseconds of each of `passes` passes, until the logits are on the host.
  std::vector<double> run(int passes);
  // Over some further passes; no rows where ATen computes.
  LayerReport layers();

 private:
  void pass();

  Network& network_;
  const Device& device_;
  at::Tensor images_;
  const Network::FixedWeights fixed_weights_;
};

}  // namespace chexnet
