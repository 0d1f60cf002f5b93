// All parameters of a network in one flat buffer, their gradients in another of the same layout,
// and the running statistics of BatchNorm in a third. The layout is the order in which backward
// finishes gradients (last layer first), so a prefix of the gradient buffer is complete at any time
// and can travel. Behind the gradients is a tail with this step's batch statistics, in the layout
// of the running statistics: they are averaged over ranks with the last bucket.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chexnet {

enum class Init { kZero, kOne, kNormalFanIn, kNormalFanOut, kUniformFanIn };

struct Parameter {
  std::string name;                 // torchvision's, e.g. "features.conv0.weight"
  std::vector<std::int64_t> shape;  // row-major
  Init init = Init::kZero;
  std::int64_t fan_in = 1;          // for kUniformFanIn of a bias
  bool is_weight = false;           // convolution or linear weight: decays, and has a 16-bit copy
  std::int64_t begin = 0, end = 0;  // elements of the flat buffer
};

struct Statistics {
  std::string name;  // e.g. "features.norm0": owns running_mean, running_var
  std::int64_t channels = 0;
  std::int64_t begin = 0;  // mean at begin, variance at begin + channels
};

class Parameters {
 public:
  // --- description: called in forward order while the network is built
  int add(Parameter parameter);
  int add_statistics(const std::string& name, std::int64_t channels);
  // Takes the memory. `master` is float or double; `compute` the type of weights in forward and
  // backward.
  void allocate(at::Device device, at::ScalarType master, at::ScalarType compute);
  // Values as torchvision draws them, from Philox(seed, name): independent of order and ranks.
  void initialize(std::uint64_t seed);

  // --- use
  at::Tensor value(int id) const { return values_[index(id)]; }  // master
  at::Tensor compute(int id) const {
    return compute_[index(id)];
  }  // 16-bit copy of a weight, or the master
  at::Tensor running_mean(int id) const;
  at::Tensor running_var(int id) const;
  at::Tensor batch_mean(
      int id) const;  // views of the tail, written by the layer in a training forward
  at::Tensor batch_var(int id) const;

  // Backward of micro-batch `micro` of `count`: stores or adds gradients. After the last one,
  // `written(end)` is called with the end of the finished prefix.
  void begin_step(int count, std::function<void(std::int64_t)> written);
  void begin_micro_batch(int micro);
  void set_gradient(int id, const at::Tensor& gradient);
  // For a back end that writes the flat buffer itself: all gradients below `end` are final.
  void gradients_written(std::int64_t end) {
    if (written_) written_(end);
  }
  int micro_batch() const { return micro_; }
  int micro_batches() const { return micro_count_; }
  // First element of a parameter in the flat values, of a BatchNorm in the running statistics.
  std::int64_t begin_of(const std::string& name) const;
  std::int64_t statistics_begin_of(const std::string& name) const;
  // Called once per layer in a training forward.
  void set_batch_statistics(int id, const at::Tensor& mean, const at::Tensor& unbiased_var);
  // running = (1 - momentum) * running + momentum * batch (PyTorch's rule), after the tail was
  // averaged.
  void update_running(double momentum = 0.1);
  void refresh_compute_copies();

  // --- the flat buffers
  const at::Tensor& flat_values() const { return flat_values_; }
  at::Tensor flat_gradients() const;  // without the tail
  const at::Tensor& flat_gradients_and_tail() const { return flat_gradients_; }
  const at::Tensor& flat_running() const { return flat_running_; }
  const std::vector<Parameter>& list() const { return list_; }  // in flat order after allocate()
  const std::vector<Statistics>& statistics() const { return statistics_; }
  std::int64_t size() const { return size_; }
  std::vector<std::size_t> ends() const;
  at::ScalarType compute_type() const { return compute_type_; }

 private:
  std::size_t index(int id) const {
    return static_cast<std::size_t>(order_[static_cast<std::size_t>(id)]);
  }
  at::Tensor stat(const at::Tensor& flat, int id, bool var, std::int64_t offset) const;

  std::vector<Parameter> list_;
  std::vector<int> order_;  // [id] -> index in list_
  std::vector<Statistics> statistics_;
  std::int64_t size_ = 0, stat_size_ = 0;
  at::ScalarType compute_type_ = at::ScalarType::Float;
  at::Tensor flat_values_, flat_compute_, flat_gradients_, flat_running_;
  std::vector<at::Tensor> values_, compute_, gradients_;  // views
  std::function<void(std::int64_t)> written_;
  int micro_ = 0, micro_count_ = 1;
};

}  // namespace chexnet
