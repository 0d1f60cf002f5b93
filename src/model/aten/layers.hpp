// The building blocks, each with an explicit forward and backward on ATen
// operators: no autograd, no torch::nn. A layer finds its parameters by name,
// so they are described before (architecture.hpp). It keeps what its backward
// needs between the two calls and drops it in backward. Tensors are [N, C, H,
// W] in the context's memory format, in the compute type. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "batch_norm_operators.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/model/backend.hpp"
#include "chexnet/model/engine/micro_batch.hpp"
#include "chexnet/model/parameters.hpp"
#include "gradient_writer.hpp"

namespace chexnet {

// What layers share. `sync` is set for synchronized BatchNorm; with `kernels`
// our own compute where they can (own_operators.hpp).
struct LayerContext {
  Parameters& parameters;
  GradientWriter& gradients;
  Communicator* sync = nullptr;
  at::MemoryFormat memory_format = at::MemoryFormat::ChannelsLast;
  bool kernels = false;
};

// What every layer of one forward is told.
struct ForwardPass {
  Mode mode;
  const MicroBatch& micro_batch;  // whose batch statistics these are
  bool training() const { return mode == Mode::kTraining; }
};

struct ConvolutionWindow {
  int64_t stride = 1, padding = 0;
};

class Convolution {
 public:
  Convolution(const LayerContext& context, const std::string& name,
              ConvolutionWindow window = {});
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass);
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& micro_batch);
  // Of the network's first layer: nobody needs the gradient of the images.
  void backward_weight(const at::Tensor& dy, const MicroBatch& micro_batch);

 private:
  at::Tensor gradients(const at::Tensor& dy, const MicroBatch& micro_batch,
                       bool needs_dx);
  const LayerContext& context_;
  ConvolutionWindow window_;
  int weight_;
  at::Tensor x_;
};

// Of `channels` channels, not set yet, for maps like x.
MapStatistics new_statistics(const LayerContext& context, const at::Tensor& x,
                             int64_t channels);
// Of the pixels of the batch, with context.sync of all ranks' in training; x
// also to `copy`.
void find_statistics(const LayerContext& context, const at::Tensor& x,
                     const std::optional<at::Tensor>& copy, Mode mode,
                     bool kernels, const MapStatistics& to);

// Of x, whose readers have all added theirs, with context.sync on all ranks.
at::Tensor complete_gradient(const LayerContext& context,
                             const ReadersGradient& sum, const at::Tensor& x,
                             const MapStatistics& statistics);

// BatchNorm, by default followed by ReLU. With context.sync the batch is that
// of all ranks.
class BatchNorm {
 public:
  enum class Then { kNothing, kRelu };
  BatchNorm(const LayerContext& context, const std::string& name,
            Then then = Then::kRelu);
  // `known`: x's statistics, where x is of Features that have them.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known = {});
  // ReLU(BatchNorm(x) + shortcut), of a layer with Then::kNothing: its backward
  // is given what that ReLU has masked.
  at::Tensor forward_onto(const at::Tensor& shortcut, const at::Tensor& x,
                          const ForwardPass& pass);
  // The gradient by x.
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& micro_batch);
  // Where several BatchNorms read x: adds this one's to `sum`, which the first
  // makes. To a sum with an offset it adds what is of a pixel alone, and
  // forward was told x's statistics; complete_gradient() takes away the rest.
  void backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                     const MicroBatch& micro_batch);

 private:
  at::Tensor compute(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known,
                     const std::optional<at::Tensor>& shortcut, bool relu);
  at::Tensor forward_by_library(const at::Tensor& x,
                                const MicroBatch& micro_batch);
  ChannelSums backward_by_library(const at::Tensor& dy, at::Tensor& dx);
  ChannelSums backward_in_passes(const at::Tensor& dy, at::Tensor& dx);
  BatchNormInput take_input();
  void add_gradients(const ChannelSums& sums, const MicroBatch& micro_batch);
  const LayerContext& context_;
  bool relu_;
  bool kernels_ = false;  // of the last forward in training
  int statistics_, weight_, bias_;
  at::Tensor x_;
  at::Tensor y_;  // where ATen's operators cut: our kernels know it from x
  MapStatistics of_batch_;              // in passes
  at::Tensor mean_, invstd_, reserve_;  // for the library's backward
};

// 3x3, stride 2, padding 1.
class MaxPool {
 public:
  explicit MaxPool(const LayerContext& context) : context_(context) {}
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass);
  at::Tensor backward(const at::Tensor& dy);

 private:
  const LayerContext& context_;
  bool kernels_ = false;        // of the last forward in training
  std::vector<int64_t> shape_;  // of its x
  at::Tensor chosen_;
};

// 2x2, stride 2.
class AveragePool {
 public:
  explicit AveragePool(const LayerContext& context) : context_(context) {}
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass);
  at::Tensor backward(const at::Tensor& dy);

 private:
  const LayerContext& context_;
  bool kernels_ = false;        // of the last forward in training
  std::vector<int64_t> shape_;  // of its x
};

// The gradient dy (+ more) of y = ReLU(...) on its other side.
at::Tensor masked_by(const at::Tensor& y, const at::Tensor& dy,
                     const std::optional<at::Tensor>& more,
                     const LayerContext& context);

// Mean over the map, then a linear layer: [N,C,H,W] -> logits [N,K]. Both in
// the type of the masters whatever the map is in, as the engine's head: 16-bit
// logits would tie scores.
class Classifier {
 public:
  Classifier(const LayerContext& context, const std::string& name);
  at::Tensor forward(const at::Tensor& x, Mode mode);
  at::Tensor backward(const at::Tensor& dlogits, const MicroBatch& micro_batch);
  // The gradient by a map of this shape alone, in the master type.
  at::Tensor feature_gradient(const at::Tensor& dlogits,
                              at::IntArrayRef map_shape) const;

 private:
  const LayerContext& context_;
  int weight_, bias_;
  at::Tensor pooled_;
  std::vector<int64_t> map_shape_;
  at::ScalarType map_type_ = at::kFloat;
};

}  // namespace chexnet
