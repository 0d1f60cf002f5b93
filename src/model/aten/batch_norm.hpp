// BatchNorm with the ReLU and the pooling that follow it. By our kernels they
// are one pass; by ATen's operators one after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <variant>

#include "batch_norm_operators.hpp"
#include "layer_context.hpp"

namespace chexnet {

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

// The operator after BatchNorm; pools follow a ReLU.
enum class Then { kNothing, kRelu, kMaxPool, kAveragePool };

// That by ATen's operators, and what its backward needs.
class Activation {
 public:
  Activation(Then then, at::MemoryFormat format)
      : then_(then), format_(format) {}
  // Of y, which ReLU has cut.
  at::Tensor forward(const at::Tensor& y, const ForwardPass& pass);
  // The gradient by y before ReLU.
  at::Tensor backward(const at::Tensor& dy);

 private:
  Then then_;
  at::MemoryFormat format_;
  at::Tensor y_, indices_;
};

// BatchNorm, by default followed by ReLU. With context.sync the batch is that
// of all ranks.
class BatchNorm {
 public:
  BatchNorm(const LayerContext& context, const std::string& name,
            Then then = Then::kRelu);
  // `known`: x's statistics, where x is of Features that have them.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known = {});
  // ReLU(BatchNorm(x) + shortcut), of a layer with Then::kNothing: its backward
  // is given what that ReLU has masked.
  at::Tensor forward_onto(const at::Tensor& shortcut, const at::Tensor& x,
                          const ForwardPass& pass);
  // What the last forward in training gave, between it and backward: the same
  // bits. Where our kernels computed it, without shortcut or pool.
  bool can_repeat() const;
  at::Tensor repeated() const;
  // The gradient by x.
  at::Tensor backward(const at::Tensor& dy, const MicroBatch& micro_batch);
  // Where several BatchNorms read x: adds this one's to `sum`, which the first
  // makes. To a sum with an offset it adds what is of a pixel alone, and
  // forward was told x's statistics; complete_gradient() takes away the rest.
  void backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                     const MicroBatch& micro_batch);

 private:
  // How the last forward in training was computed, and what backward needs.
  // In passes: by our kernels, and where ranks share statistics.
  struct InPasses {
    BatchNormInput input;
    std::optional<at::Tensor> argmax;
    bool kernels;
  };
  struct ByLibrary {
    at::Tensor x, mean, invstd, reserve;
  };
  at::Tensor compute(const at::Tensor& x, const ForwardPass& pass,
                     const MapStatistics& known,
                     const std::optional<at::Tensor>& shortcut, bool relu);
  at::Tensor forward_in_passes(InPasses call, const ForwardPass& pass,
                               const std::optional<at::Tensor>& shortcut);
  at::Tensor forward_by_kernels(InPasses& call,
                                const std::optional<at::Tensor>& shortcut,
                                const std::optional<KeptStatistics>& kept);
  at::Tensor forward_by_library(const at::Tensor& x,
                                const MicroBatch& micro_batch);
  ChannelSums gradients(const at::Tensor& dy, at::Tensor& dx);
  ChannelSums backward_in_passes(const at::Tensor& dy, const InPasses& call,
                                 at::Tensor& dx);
  ChannelSums backward_by_library(const at::Tensor& dy, const ByLibrary& call,
                                  at::Tensor& dx);
  void add_gradients(const ChannelSums& sums, const MicroBatch& micro_batch);
  const LayerContext& context_;
  Then then_;
  int statistics_, weight_, bias_;
  std::variant<InPasses, ByLibrary> last_;
  Activation activation_;  // where our kernels do not compute it
};

}  // namespace chexnet
