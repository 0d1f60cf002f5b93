// All parameters of a network in one flat buffer, their gradients in another of
// the same layout, and the running statistics of BatchNorm in a third. The
// layout is the order in which backward finishes gradients (last layer first),
// so a prefix of the gradient buffer is complete at any time and can travel.
// Each parameter begins at a multiple of kAlignment elements; gaps before the
// next one stay 0. After the gradients, in the same buffer, follow this step's
// batch statistics in the layout of the running ones: they are averaged over
// ranks with the last bucket.
//
// It knows of no step: which micro-batch writes, and whom to notify, are
// arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/model/engine/network_spec.hpp"

namespace chexnet {

enum class Init { kZero, kOne, kNormalFanIn, kNormalFanOut, kUniformFanIn };

struct Parameter {
  std::string name;            // torchvision's, e.g. "features.conv0.weight"
  std::vector<int64_t> shape;  // row-major
  Init init = Init::kZero;
  int64_t fan_in = 1;  // inputs of one output, for kUniformFanIn
  // Convolution or linear weight: decays, and has a 16-bit copy.
  bool is_weight = false;
  int part = 0;                // of the network (engine/network_spec.hpp)
  int64_t begin = 0, end = 0;  // elements of the flat buffer
  bool is_head() const { return part == kHeadPart; }
};

struct Statistics {
  std::string name;  // e.g. "features.norm0": owns running_mean, running_var
  int64_t channels = 0;
  int part = 0;
  int64_t begin = 0;  // mean at begin, variance at begin + channels
};

class Parameters {
 public:
  // 128 bytes of a 16-bit copy: cuDNN's tensor-core kernels want 16, NCCL's
  // fast copies too, and a line of the GPU's cache has 128.
  static constexpr int64_t kAlignment = 64;

  // --- description, in forward order (architecture.hpp); names differ
  int add(Parameter parameter);
  int add_statistics(const std::string& name, int64_t channels, int part);
  struct Layout {
    at::Device device = at::kCPU;
    at::ScalarType master = at::kFloat;   // or double
    at::ScalarType compute = at::kFloat;  // of weights in forward and backward
    // Of the elements of a convolution's weight and of its gradient, in every
    // flat buffer: row-major, or channels-last.
    at::MemoryFormat weights = at::MemoryFormat::Contiguous;
  };
  // Takes the memory.
  void allocate(const Layout& layout);
  // Values as torchvision draws them, from Philox(seed, name): independent of
  // order and ranks.
  void initialize(uint64_t seed);

  // --- use
  // The values that add and add_statistics returned, by name. std::logic_error:
  // nothing of that name.
  int id_of(const std::string& name) const;
  int statistics_id_of(const std::string& name) const;
  // First element of a parameter in the flat values, of a BatchNorm in the
  // running statistics.
  int64_t begin_of(const std::string& name) const;
  int64_t end_of(int id) const { return list_[index(id)].end; }
  int64_t statistics_begin_of(const std::string& name) const;
  // Where the first `frozen_parts` of the network are frozen, backward ends
  // before them: it writes the flat buffer's elements below this one.
  int64_t trained_end(int frozen_parts) const;
  // First of the running statistics that move then.
  int64_t moving_statistics(int frozen_parts) const;

  // Views, made once. `compute`: the 16-bit copy of a weight, or the master.
  const at::Tensor& value(int id) const { return values_[index(id)]; }
  const at::Tensor& compute(int id) const { return compute_[index(id)]; }
  const at::Tensor& gradient(int id) const { return gradients_[index(id)]; }
  const at::Tensor& running_mean(int id) const {
    return running_.means[at(id)];
  }
  const at::Tensor& running_var(int id) const { return running_.vars[at(id)]; }
  // Of the batch statistics after the gradients.
  const at::Tensor& batch_mean(int id) const { return batch_.means[at(id)]; }
  const at::Tensor& batch_var(int id) const { return batch_.vars[at(id)]; }

  // running = (1 - momentum) * running + momentum * batch (PyTorch's rule),
  // after the batch statistics were averaged over ranks, from element `first`
  // on. `not_finite`, a scalar of the device: 1 = nothing changes.
  void update_running(const at::Tensor& not_finite, int64_t first = 0,
                      double momentum = 0.1);
  void refresh_compute_copies();

  // --- the flat buffers
  const at::Tensor& flat_values() const { return flat_values_; }
  // The values themselves, or their copies in 16 bits.
  const at::Tensor& flat_compute() const { return flat_compute_; }
  at::Tensor flat_gradients() const;    // without the statistics
  at::Tensor batch_statistics() const;  // after them
  const at::Tensor& flat_gradients_and_statistics() const {
    return flat_gradients_;
  }
  const at::Tensor& flat_running() const { return flat_running_; }
  // In flat order after allocate().
  const std::vector<Parameter>& list() const { return list_; }
  // A parameter's elements of a buffer of the layout of the values: a view of
  // its shape.
  at::Tensor part(const at::Tensor& flat, const Parameter& parameter) const;
  const std::vector<Statistics>& statistics() const { return statistics_; }
  // Elements of the flat values, gaps included: where the statistics begin
  // after the gradients.
  int64_t size() const { return size_; }
  int64_t count() const;  // of numbers that are learned
  std::vector<Extent> extents(int frozen_parts = 0) const;  // of the others
  const Layout& layout() const { return layout_; }

 private:
  // allocate() turns the order of description round.
  size_t index(int id) const {
    return list_.size() - 1 - static_cast<size_t>(id);
  }
  static size_t at(int id) { return static_cast<size_t>(id); }
  struct StatisticsViews {
    std::vector<at::Tensor> means, vars;  // [statistics]
  };
  StatisticsViews views_of(const at::Tensor& flat) const;

  std::vector<Parameter> list_;
  std::vector<Statistics> statistics_;
  int64_t size_ = 0, stat_size_ = 0;
  Layout layout_;
  at::Tensor flat_values_, flat_compute_, flat_gradients_, flat_running_;
  std::vector<at::Tensor> values_, compute_, gradients_;  // views
  StatisticsViews running_, batch_;
};

}  // namespace chexnet
