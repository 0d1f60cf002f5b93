// Gradients on their way from operators into the flat buffer. Operators return
// each gradient in separate memory; copying one at a time would cost as many
// calls as there are parameters, so a group of them is copied by one call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "chexnet/model/engine/micro_batch.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

// In the order of the flat buffer. One thread.
class GradientWriter {
 public:
  explicit GradientWriter(Parameters& parameters) : parameters_(parameters) {}
  // Takes a gradient; copies the group once it is worth a call.
  void add(int id, at::Tensor gradient, const MicroBatch& micro_batch);
  // At the end of backward: copies the rest.
  void flush(const MicroBatch& micro_batch);
  // Gradients that a failed backward left behind.
  void clear();

 private:
  void copy(at::ScalarType type, const MicroBatch& micro_batch);
  Parameters& parameters_;
  std::vector<int> ids_;
  std::vector<at::Tensor> gradients_;  // of ids_
  size_t bytes_ = 0;
};

}  // namespace chexnet
