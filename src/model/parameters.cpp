// The three buffers, each part behind the one that backward reaches before it:
//
//   values      [ classifier | ... | first layer .]
//   gradients   [ classifier | ... | first layer .][ batch statistics ]
//   running                                        [ mean, var | mean, var ...
//   ]
//
// Nothing writes into the gaps before aligned begins: values, gradients and the
// optimizer's state are 0 there, and 0 is what each update makes of 0.
//
// Parameters are added in the order of forward and turned round by allocate(),
// so an id is not a position (index() converts). Statistics keep forward's
// order.
#include "chexnet/model/parameters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "chexnet/core/philox.hpp"

namespace chexnet {
namespace {

std::int64_t aligned(std::int64_t element) {
  constexpr std::int64_t kStep = Parameters::kAlignment;
  return (element + kStep - 1) / kStep * kStep;
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

// Each parameter has random numbers of its own, by its name: what one draws
// does not depend on which others there are.
std::uint64_t name_hash(const std::string& name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// torchvision: kaiming_normal_ for convolutions (fan_in in DenseNet, fan_out in
// ResNet, gain sqrt 2), nn.Linear's default uniform(+-1/sqrt(fan_in)) for the
// classifier.
void draw(const Parameter& p, std::uint64_t seed, double* out) {
  const std::int64_t n = count_of(p.shape);
  Random random(seed, Purpose::kWeights, name_hash(p.name));
  const std::int64_t receptive =
      p.shape.size() == 4 ? p.shape[2] * p.shape[3] : 1;
  switch (p.init) {
    case Init::kZero:
    case Init::kOne:
      std::fill_n(out, n, p.init == Init::kOne ? 1.0 : 0.0);
      break;
    case Init::kNormalFanIn:
    case Init::kNormalFanOut: {
      const auto fan = static_cast<double>(
          (p.init == Init::kNormalFanIn ? p.shape[1] : p.shape[0]) * receptive);
      const double deviation = std::sqrt(2.0 / fan);
      for (std::int64_t i = 0; i < n; ++i) out[i] = deviation * random.normal();
      break;
    }
    case Init::kUniformFanIn: {
      const double bound = 1.0 / std::sqrt(static_cast<double>(p.fan_in));
      for (std::int64_t i = 0; i < n; ++i)
        out[i] = random.uniform(-bound, bound);
      break;
    }
  }
}

}  // namespace

int Parameters::add(Parameter parameter) {
  assert(!flat_values_.defined());
  assert(std::ranges::find(list_, parameter.name, &Parameter::name) ==
         list_.end());
  list_.push_back(std::move(parameter));
  return static_cast<int>(list_.size()) - 1;
}

int Parameters::add_statistics(const std::string& name, std::int64_t channels) {
  statistics_.push_back({name, channels, stat_size_});
  stat_size_ += 2 * channels;
  return static_cast<int>(statistics_.size()) - 1;
}

void Parameters::allocate(at::Device device, at::ScalarType master,
                          at::ScalarType compute) {
  assert(!flat_values_.defined());  // once
  std::reverse(list_.begin(), list_.end());
  size_ = 0;
  for (auto& p : list_) {
    p.begin = size_;
    p.end = p.begin + count_of(p.shape);
    size_ = aligned(p.end);
  }
  compute_type_ = compute;
  const auto options = at::TensorOptions().device(device).dtype(master);
  flat_values_ = at::zeros({size_}, options);
  flat_gradients_ = at::zeros({size_ + stat_size_}, options);
  flat_running_ = at::zeros({stat_size_}, options);
  flat_compute_ = compute == master
                      ? flat_values_
                      : at::zeros({size_}, options.dtype(compute));
  values_.clear();
  compute_.clear();
  gradients_.clear();
  for (const auto& p : list_) {
    values_.push_back(part(flat_values_, p));
    gradients_.push_back(part(flat_gradients_, p));
    compute_.push_back(p.is_weight ? part(flat_compute_, p) : values_.back());
  }
  for (int id = 0; id < static_cast<int>(statistics_.size()); ++id)
    running_var(id).fill_(1.0);
}

void Parameters::initialize(std::uint64_t seed) {
  at::Tensor host = at::zeros({size_}, at::kDouble);
  for (const auto& p : list_) draw(p, seed, host.data_ptr<double>() + p.begin);
  flat_values_.copy_(host);
  refresh_compute_copies();
}

at::Tensor Parameters::stat(const at::Tensor& flat, int id, bool var,
                            std::int64_t offset) const {
  const auto& s = statistics_[static_cast<std::size_t>(id)];
  return flat.narrow(0, offset + s.begin + (var ? s.channels : 0), s.channels);
}
at::Tensor Parameters::running_mean(int id) const {
  return stat(flat_running_, id, false, 0);
}
at::Tensor Parameters::running_var(int id) const {
  return stat(flat_running_, id, true, 0);
}
at::Tensor Parameters::batch_mean(int id) const {
  return stat(flat_gradients_, id, false, size_);
}
at::Tensor Parameters::batch_var(int id) const {
  return stat(flat_gradients_, id, true, size_);
}

// The first micro-batch writes and the others add, so nothing is set to zero
// between two steps.
void Parameters::set_gradient(int id, const at::Tensor& gradient,
                              const MicroBatch& micro_batch) {
  const std::size_t i = index(id);
  assert(gradient.numel() == gradients_[i].numel());
  if (micro_batch.first())
    gradients_[i].copy_(gradient);
  else
    gradients_[i].add_(gradient);
  micro_batch.written(list_[i].end);
}

void Parameters::set_batch_statistics(int id, const at::Tensor& mean,
                                      const at::Tensor& unbiased_var,
                                      const MicroBatch& micro_batch) {
  at::Tensor to_mean = batch_mean(id), to_var = batch_var(id);
  assert(mean.numel() == to_mean.numel() &&
         unbiased_var.numel() == to_var.numel());
  const double weight = 1.0 / micro_batch.count;
  if (micro_batch.first()) {
    const at::Tensor factor = at::scalar_tensor(weight, to_mean.options());
    at::mul_out(to_mean, mean.to(to_mean.scalar_type()), factor);
    at::mul_out(to_var, unbiased_var.to(to_var.scalar_type()), factor);
  } else {
    to_mean.add_(mean, weight);
    to_var.add_(unbiased_var, weight);
  }
}

int Parameters::id_of(const std::string& name) const {
  const auto found = std::ranges::find(list_, name, &Parameter::name);
  if (found == list_.end()) throw std::logic_error("no parameter " + name);
  return static_cast<int>(index(static_cast<int>(found - list_.begin())));
}
int Parameters::statistics_id_of(const std::string& name) const {
  const auto found = std::ranges::find(statistics_, name, &Statistics::name);
  if (found == statistics_.end())
    throw std::logic_error("no BatchNorm " + name);
  return static_cast<int>(found - statistics_.begin());
}

std::int64_t Parameters::begin_of(const std::string& name) const {
  return list_[index(id_of(name))].begin;
}
std::int64_t Parameters::statistics_begin_of(const std::string& name) const {
  return statistics_[static_cast<std::size_t>(statistics_id_of(name))].begin;
}

std::int64_t Parameters::head_end() const {
  std::int64_t end = 0;
  for (const auto& p : list_)
    if (p.is_head) end = p.end;
  return end;
}

void Parameters::update_running(double momentum) {
  at::Tensor running = flat_running_;
  running.mul_(1.0 - momentum)
      .add_(flat_gradients_.narrow(0, size_, stat_size_), momentum);
}

void Parameters::refresh_compute_copies() {
  if (!flat_compute_.is_same(flat_values_)) flat_compute_.copy_(flat_values_);
}

at::Tensor Parameters::flat_gradients() const {
  return flat_gradients_.narrow(0, 0, size_);
}

at::Tensor Parameters::part(const at::Tensor& flat,
                            const Parameter& parameter) const {
  return flat.narrow(0, parameter.begin, parameter.end - parameter.begin)
      .view(parameter.shape);
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const auto& p : list_) count += p.end - p.begin;
  return count;
}

std::vector<Extent> Parameters::extents() const {
  std::vector<Extent> extents;
  for (const auto& p : list_)
    extents.push_back(
        {static_cast<std::size_t>(p.begin), static_cast<std::size_t>(p.end)});
  return extents;
}

}  // namespace chexnet
