// A short training run on synthetic pixels that PyTorch repeats from the same
// start: what the stored reference was made of.
// scripts/reference/make_parity_dump.py is the other side.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {

// The rates are low: at 1e-3 (DenseNet with Adam) and 1e-4 (ResNet with SGD)
// this run on noise is chaotic even in fp64, and PyTorch on an Intel and on an
// AMD processor, whose libraries add up in another order, end 30 % apart.
struct ParityCase {
  std::string arch, optimizer;
  double lr;
  std::string name() const { return arch + "-" + optimizer; }
};
inline const std::vector<ParityCase>& parity_cases() {
  static const std::vector<ParityCase> cases = {{"densenet121", "adam", 1e-5},
                                                {"densenet121", "sgd", 1e-3},
                                                {"resnet50", "adam", 1e-5},
                                                {"resnet50", "sgd", 1e-6}};
  return cases;
}

constexpr int kParitySteps = 20, kParityBatch = 6, kParitySize = 32,
              kParityFindings = 14;

inline at::Tensor parity_images(int step, int batch = kParityBatch) {
  at::Tensor images =
      at::empty({batch, 1, kParitySize, kParitySize}, at::kByte);
  Random random(11, Purpose::kTest, static_cast<uint64_t>(step));
  for (int64_t i = 0; i < images.numel(); ++i)
    images.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(random.below(256));
  return images;
}
inline at::Tensor parity_labels(int step, int batch = kParityBatch) {
  at::Tensor labels = at::empty({batch, kParityFindings}, at::kFloat);
  Random random(12, Purpose::kTest, static_cast<uint64_t>(step));
  for (int64_t i = 0; i < labels.numel(); ++i)
    labels.data_ptr<float>()[i] = random.chance(0.2) ? 1.0f : 0.0f;
  return labels;
}
inline LossWeights equal_weights() {
  return {std::vector<double>(kParityFindings, 1.0),
          std::vector<double>(kParityFindings, 1.0)};
}

}  // namespace chexnet
