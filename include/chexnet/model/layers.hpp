// The building blocks, each with an explicit forward and backward on ATen operators: no autograd,
// no torch::nn. A layer keeps what its backward needs between the two calls and drops it in
// backward. Tensors are [N, C, H, W] in the context's memory format, in the compute type. One
// thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

enum class Mode {
  kInference,  // running statistics, nothing kept
  kTraining,   // batch statistics, inputs kept for backward
};

// What layers share. `sync` is set for synchronized BatchNorm.
struct LayerContext {
  Parameters& parameters;
  Communicator* sync = nullptr;
  at::MemoryFormat memory_format = at::MemoryFormat::ChannelsLast;
};

class Convolution {
 public:
  struct Shape {
    std::int64_t in, out, kernel, stride = 1, padding = 0;
  };
  Convolution(LayerContext& context, const std::string& name, Shape shape, Init init);
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dy, bool needs_dx = true);

 private:
  LayerContext& context_;
  Shape shape_;
  int weight_;
  at::Tensor x_;
};

// BatchNorm followed by ReLU where `relu`. With context.sync the batch is that of all ranks.
class BatchNorm {
 public:
  BatchNorm(LayerContext& context, const std::string& name, std::int64_t channels, bool relu);
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dy);

 private:
  at::Tensor forward_synchronized(const at::Tensor& x);
  at::Tensor backward_synchronized(const at::Tensor& dy);
  LayerContext& context_;
  bool relu_;
  int statistics_, weight_, bias_;
  at::Tensor x_, y_, mean_, invstd_;
  double count_ = 0;  // elements a channel's statistics were taken over
};

// 3x3, stride 2, padding 1.
class MaxPool {
 public:
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dy);

 private:
  at::Tensor x_, indices_;
};

// 2x2, stride 2.
class AveragePool {
 public:
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dy);

 private:
  at::Tensor x_;
};

// Mean over the map, then a linear layer: [N,C,H,W] -> logits [N,K]. Both in the type of the
// masters whatever the map is in, as the engine's head: 16-bit logits would tie scores.
class Classifier {
 public:
  Classifier(LayerContext& context, const std::string& name, std::int64_t in, std::int64_t out,
             Init bias);
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dlogits);

 private:
  LayerContext& context_;
  int weight_, bias_;
  at::Tensor pooled_;
  std::vector<std::int64_t> map_shape_;
  at::ScalarType map_type_ = at::kFloat;
};

}  // namespace chexnet
