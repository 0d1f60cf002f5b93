// The three buffers, with parts in the order in which backward reaches them:
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

int64_t aligned(int64_t element) {
  constexpr int64_t kStep = Parameters::kAlignment;
  return (element + kStep - 1) / kStep * kStep;
}

int64_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

// Each parameter has a random sequence by its name: what one draws does not
// depend on which others there are.
uint64_t name_hash(const std::string& name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// torchvision: kaiming_normal_ for convolutions (fan_in in DenseNet, fan_out in
// ResNet, gain sqrt 2), nn.Linear's default uniform(+-1/sqrt(fan_in)) for the
// classifier.
void draw(const Parameter& p, uint64_t seed, double* out) {
  const int64_t n = count_of(p.shape);
  Random random(seed, Purpose::kWeights, name_hash(p.name));
  const int64_t receptive = p.shape.size() == 4 ? p.shape[2] * p.shape[3] : 1;
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
      for (int64_t i = 0; i < n; ++i) out[i] = deviation * random.normal();
      break;
    }
    case Init::kUniformFanIn: {
      const double bound = 1.0 / std::sqrt(static_cast<double>(p.fan_in));
      for (int64_t i = 0; i < n; ++i) out[i] = random.uniform(-bound, bound);
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

int Parameters::add_statistics(const std::string& name, int64_t channels,
                               int part) {
  statistics_.push_back({name, channels, part, stat_size_});
  stat_size_ += 2 * channels;
  return static_cast<int>(statistics_.size()) - 1;
}

void Parameters::allocate(const Layout& layout) {
  assert(!flat_values_.defined());  // once
  layout_ = layout;
  std::reverse(list_.begin(), list_.end());
  size_ = 0;
  for (auto& p : list_) {
    p.begin = size_;
    p.end = p.begin + count_of(p.shape);
    size_ = aligned(p.end);
  }
  const auto options =
      at::TensorOptions().device(layout.device).dtype(layout.master);
  flat_values_ = at::zeros({size_}, options);
  flat_gradients_ = at::zeros({size_ + stat_size_}, options);
  flat_running_ = at::zeros({stat_size_}, options);
  flat_compute_ = layout.compute == layout.master
                      ? flat_values_
                      : at::zeros({size_}, options.dtype(layout.compute));
  for (const auto& p : list_) {
    values_.push_back(part(flat_values_, p));
    gradients_.push_back(part(flat_gradients_, p));
    compute_.push_back(p.is_weight ? part(flat_compute_, p) : values_.back());
  }
  running_ = views_of(flat_running_);
  batch_ = views_of(batch_statistics());
  for (const at::Tensor& var : running_.vars) var.fill_(1.0);
}

// In row-major order on the host, so that values do not depend on the layout.
void Parameters::initialize(uint64_t seed) {
  at::Tensor host = at::zeros({size_}, at::kDouble);
  for (const auto& p : list_) {
    at::Tensor drawn = at::empty(p.shape, at::kDouble);
    draw(p, seed, drawn.data_ptr<double>());
    part(host, p).copy_(drawn);
  }
  flat_values_.copy_(host);
  refresh_compute_copies();
}

Parameters::StatisticsViews Parameters::views_of(const at::Tensor& flat) const {
  StatisticsViews views;
  for (const auto& s : statistics_) {
    views.means.push_back(flat.narrow(0, s.begin, s.channels));
    views.vars.push_back(flat.narrow(0, s.begin + s.channels, s.channels));
  }
  return views;
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

int64_t Parameters::begin_of(const std::string& name) const {
  return list_[index(id_of(name))].begin;
}
int64_t Parameters::statistics_begin_of(const std::string& name) const {
  return statistics_[static_cast<size_t>(statistics_id_of(name))].begin;
}

int64_t Parameters::trained_end(int frozen_parts) const {
  const auto frozen = std::ranges::find_if(
      list_, [&](const Parameter& p) { return p.part < frozen_parts; });
  return frozen == list_.end() ? size_ : frozen->begin;
}
int64_t Parameters::moving_statistics(int frozen_parts) const {
  const auto moves = std::ranges::find_if(
      statistics_, [&](const Statistics& s) { return s.part >= frozen_parts; });
  return moves == statistics_.end() ? stat_size_ : moves->begin;
}

// A choice, and no factor of 0: 0 times NaN is NaN.
void Parameters::update_running(const at::Tensor& not_finite, int64_t first,
                                double momentum) {
  const int64_t count = stat_size_ - first;
  if (count == 0) return;
  at::Tensor running = flat_running_.narrow(0, first, count);
  const at::Tensor next =
      running.mul(1.0 - momentum)
          .add_(batch_statistics().narrow(0, first, count), momentum);
  running.copy_(at::where(not_finite.gt(0), running, next));
}

void Parameters::refresh_compute_copies() {
  if (!flat_compute_.is_same(flat_values_)) flat_compute_.copy_(flat_values_);
}

at::Tensor Parameters::flat_gradients() const {
  return flat_gradients_.narrow(0, 0, size_);
}

at::Tensor Parameters::batch_statistics() const {
  return flat_gradients_.narrow(0, size_, stat_size_);
}

at::Tensor Parameters::part(const at::Tensor& flat,
                            const Parameter& parameter) const {
  const at::Tensor elements =
      flat.narrow(0, parameter.begin, parameter.end - parameter.begin);
  const auto& shape = parameter.shape;
  if (layout_.weights != at::MemoryFormat::ChannelsLast || shape.size() != 4)
    return elements.view(shape);
  // Stored as [out, height, width, in].
  return elements.view({shape[0], shape[2], shape[3], shape[1]})
      .permute({0, 3, 1, 2});
}

int64_t Parameters::count() const {
  int64_t count = 0;
  for (const auto& p : list_) count += p.end - p.begin;
  return count;
}

std::vector<Extent> Parameters::extents(int frozen_parts) const {
  std::vector<Extent> extents;
  for (const auto& p : list_)
    if (p.part >= frozen_parts)
      extents.push_back(
          {static_cast<size_t>(p.begin), static_cast<size_t>(p.end)});
  return extents;
}

}  // namespace chexnet
