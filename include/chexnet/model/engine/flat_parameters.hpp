// The caller's parameter memory as the engine sees it: three flat buffers of
// the accumulator's type, and the positions of named tensors in them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace chexnet {

// Not owned; must outlive the engine, and not move.
struct FlatParameters {
  void* values = nullptr;
  // Like the values; then, from `batch_statistics` on, like `running`
  void* gradients = nullptr;
  void* running = nullptr;  // running mean and variance of each BatchNorm
  // Element of `gradients` where this step's batch statistics begin.
  int64_t batch_statistics = 0;
  // First element of a parameter; of a BatchNorm's mean, its variance
  // following.
  std::function<int64_t(const std::string&name)> parameter, statistics;
};

}  // namespace chexnet
