// What backward needs of forward is kept in the layer and given up by backward
// (std::exchange), so memory falls while backward goes on. What inference does
// keeps nothing.
#include "layers.hpp"

#include <ATen/ATen.h>

#include <cassert>
#include <utility>

#include "own_operators.hpp"

namespace chexnet {
namespace {

// [rank][value], on the device and without a wait of the host.
at::Tensor of_all_ranks(Communicator& comm, const at::Tensor& own) {
  assert(own.scalar_type() == at::kDouble && own.is_contiguous());
  at::Tensor all = at::empty({comm.size(), own.numel()}, own.options());
  comm.gather(own.data_ptr<double>(), all.data_ptr<double>(),
              static_cast<size_t>(own.numel()));
  return all;
}

// Of two values per channel.
std::tuple<at::Tensor, at::Tensor> sums_of_all_ranks(Communicator& comm,
                                                     const at::Tensor& a,
                                                     const at::Tensor& b) {
  const at::Tensor sums = of_all_ranks(comm, at::cat({a, b}).to(at::kDouble))
                              .sum(0)
                              .to(a.scalar_type());
  return {sums.narrow(0, 0, a.numel()), sums.narrow(0, a.numel(), b.numel())};
}

}  // namespace

Convolution::Convolution(const LayerContext& context, const std::string& name,
                         ConvolutionWindow window)
    : context_(context),
      window_(window),
      weight_(context.parameters.id_of(name + ".weight")) {}

at::Tensor Convolution::forward(const at::Tensor& x, const ForwardPass& pass) {
  const at::Tensor weight = context_.parameters.compute(weight_);
  assert(x.size(1) == weight.size(1));
  if (pass.training()) x_ = x;
  return at::convolution(x, weight, {}, {window_.stride, window_.stride},
                         {window_.padding, window_.padding}, {1, 1}, false,
                         {0, 0}, 1);
}

at::Tensor Convolution::backward(const at::Tensor& dy,
                                 const MicroBatch& micro_batch) {
  return gradients(dy, micro_batch, true);
}
void Convolution::backward_weight(const at::Tensor& dy,
                                  const MicroBatch& micro_batch) {
  gradients(dy, micro_batch, false);
}

at::Tensor Convolution::gradients(const at::Tensor& dy,
                                  const MicroBatch& micro_batch,
                                  bool needs_dx) {
  const at::Tensor x = std::exchange(x_, {});
  assert(x.defined());  // a forward in training came before
  auto [dx, dw, db] = at::convolution_backward(
      dy, x, context_.parameters.compute(weight_), c10::nullopt,
      {window_.stride, window_.stride}, {window_.padding, window_.padding},
      {1, 1}, false, {0, 0}, 1, {needs_dx, true, false});
  context_.gradients.add(weight_, dw, micro_batch);
  return dx;
}

BatchNorm::BatchNorm(const LayerContext& context, const std::string& name,
                     Then then)
    : context_(context),
      relu_(then == Then::kRelu),
      statistics_(context.parameters.statistics_id_of(name)),
      weight_(context.parameters.id_of(name + ".weight")),
      bias_(context.parameters.id_of(name + ".bias")) {}

MapStatistics new_statistics(const LayerContext& context, const at::Tensor& x,
                             int64_t channels) {
  const auto options =
      x.options().dtype(context.parameters.flat_running().scalar_type());
  MapStatistics made{at::empty({channels}, options),
                     at::empty({channels}, options)};
  if (context.sync != nullptr) made.pixels = at::empty({1}, options);
  return made;
}

void find_statistics(const LayerContext& context, const at::Tensor& x,
                     const std::optional<at::Tensor>& copy, Mode mode,
                     bool kernels, const MapStatistics& to) {
  if (context.sync == nullptr || mode != Mode::kTraining)
    return batch_norm_statistics(x, copy, to);
  const at::Tensor own = batch_norm_moments(x, copy, kernels);
  merge_moments(of_all_ranks(*context.sync, own), to, kernels);
}

at::Tensor complete_gradient(const LayerContext& context,
                             const ReadersGradient& sum, const at::Tensor& x,
                             const MapStatistics& statistics) {
  ReadersGradient all = sum;
  if (context.sync != nullptr)
    std::tie(all.offset, all.slope) =
        sums_of_all_ranks(*context.sync, sum.offset, sum.slope);
  return batch_norm_corrected(all, x, statistics);
}

at::Tensor BatchNorm::forward(const at::Tensor& x, const ForwardPass& pass,
                              const MapStatistics& known) {
  return compute(x, pass, known, {}, relu_);
}

at::Tensor BatchNorm::forward_onto(const at::Tensor& shortcut,
                                   const at::Tensor& x,
                                   const ForwardPass& pass) {
  assert(!relu_);
  return compute(x, pass, {}, shortcut, true);
}

// By our kernels, and where ranks share statistics, in passes; else by the
// library's operator.
at::Tensor BatchNorm::compute(const at::Tensor& x, const ForwardPass& pass,
                              const MapStatistics& known,
                              const std::optional<at::Tensor>& shortcut,
                              bool relu) {
  const Parameters& p = context_.parameters;
  BatchNormInput input{x, p.value(weight_), p.value(bias_), known, relu};
  const bool kernels =
      known.mean.defined() || (context_.kernels && own_kernels_take(x));
  if (!pass.training()) {
    input.statistics = {p.running_mean(statistics_),
                        p.running_var(statistics_)};
    return batch_norm_apply(input, shortcut, {}, kernels);
  }
  kernels_ = kernels;
  x_ = x;
  at::Tensor y;
  if (kernels_ || context_.sync != nullptr) {
    if (!known.mean.defined()) {
      input.statistics = new_statistics(context_, x, x.size(1));
      find_statistics(context_, x, {}, pass.mode, kernels_, input.statistics);
    }
    of_batch_ = input.statistics;
    const KeptStatistics kept{p.batch_mean(statistics_),
                              p.batch_var(statistics_),
                              1.0 / pass.micro_batch.count};
    y = batch_norm_apply(input, shortcut, kept, kernels_);
  } else {
    y = forward_by_library(x, pass.micro_batch);
    add_and_cut(y, shortcut, relu);
  }
  if (relu_ && !kernels_) y_ = y;
  return y;
}

// The operator chooses among the library's kernels, as PyTorch does, and writes
// the batch's mean and unbiased variance where they travel from: the momentum
// 1 / n of micro-batch n makes them the mean over micro-batches.
at::Tensor BatchNorm::forward_by_library(const at::Tensor& x,
                                         const MicroBatch& micro_batch) {
  const Parameters& p = context_.parameters;
  at::Tensor mean = p.batch_mean(statistics_), var = p.batch_var(statistics_);
  at::Tensor y;
  std::tie(y, mean_, invstd_, reserve_) = at::_batch_norm_with_update(
      x, p.value(weight_), p.value(bias_), mean, var,
      1.0 / (micro_batch.index + 1), kBatchNormEpsilon);
  // Of one value per channel the operator makes the unbiased variance 0/0.
  if (x.numel() == x.size(1)) var.zero_();
  return y;
}

at::Tensor BatchNorm::backward(const at::Tensor& given,
                               const MicroBatch& micro_batch) {
  // ReLU's cut is the kernels' own work, and else made once for all passes.
  at::Tensor dy = given;
  if (kernels_)
    dy = dense(given);
  else if (relu_)
    dy = at::threshold_backward(given, std::exchange(y_, {}), 0);
  at::Tensor dx;
  add_gradients(kernels_ || context_.sync != nullptr
                    ? backward_in_passes(dy, dx)
                    : backward_by_library(dy, dx),
                micro_batch);
  return dx;
}

void BatchNorm::backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                              const MicroBatch& micro_batch) {
  if (sum.offset.defined()) {
    assert(kernels_);
    const ChannelSums sums = batch_norm_add_up(dense(dy), take_input(), sum);
    return add_gradients(sums, micro_batch);
  }
  const at::Tensor dx = backward(dy, micro_batch);
  if (sum.map.defined())
    sum.map.add_(dx);
  else
    sum.map = dx;
}

BatchNormInput BatchNorm::take_input() {
  const Parameters& p = context_.parameters;
  return {std::exchange(x_, {}), p.value(weight_), p.value(bias_),
          std::exchange(of_batch_, {}), relu_ && kernels_};
}

void BatchNorm::add_gradients(const ChannelSums& sums,
                              const MicroBatch& micro_batch) {
  context_.gradients.add(bias_, sums.dbias, micro_batch);
  context_.gradients.add(weight_, sums.dweight, micro_batch);
}

ChannelSums BatchNorm::backward_by_library(const at::Tensor& dy,
                                           at::Tensor& dx) {
  const Parameters& p = context_.parameters;
  ChannelSums sums;
  std::tie(dx, sums.dweight, sums.dbias) = at::batch_norm_backward(
      dy, std::exchange(x_, {}), p.value(weight_), p.running_mean(statistics_),
      p.running_var(statistics_), std::exchange(mean_, {}),
      std::exchange(invstd_, {}), true, kBatchNormEpsilon, {true, true, true},
      std::exchange(reserve_, {}));
  return sums;
}

// dx needs all ranks' sums; the gradients of weight and bias are this rank's,
// averaged later like all others.
ChannelSums BatchNorm::backward_in_passes(const at::Tensor& dy,
                                          at::Tensor& dx) {
  const BatchNormInput input = take_input();
  ChannelSums own = batch_norm_sums(dy, input, kernels_);
  ChannelSums all = own;
  if (context_.sync != nullptr)
    std::tie(all.dweight, all.dbias) =
        sums_of_all_ranks(*context_.sync, own.dweight, own.dbias);
  dx = batch_norm_gradient(dy, input, all, kernels_);
  return own;
}

at::Tensor MaxPool::forward(const at::Tensor& x, const ForwardPass& pass) {
  const bool kernels = context_.kernels && own_kernels_take(x);
  auto [y, chosen] = max_pool(x, kernels);
  if (pass.training()) {
    kernels_ = kernels;
    shape_ = x.sizes().vec();
    chosen_ = chosen;
  }
  return y;
}

at::Tensor MaxPool::backward(const at::Tensor& dy) {
  return max_pool_gradient(dy, shape_, context_.memory_format,
                           std::exchange(chosen_, {}), kernels_);
}

at::Tensor AveragePool::forward(const at::Tensor& x, const ForwardPass& pass) {
  const bool kernels = context_.kernels && own_kernels_take(x);
  if (pass.training()) {
    kernels_ = kernels;
    shape_ = x.sizes().vec();
  }
  return average_pool(x, kernels);
}

at::Tensor AveragePool::backward(const at::Tensor& dy) {
  return average_pool_gradient(dy, shape_, context_.memory_format, kernels_);
}

at::Tensor masked_by(const at::Tensor& y, const at::Tensor& dy,
                     const std::optional<at::Tensor>& more,
                     const LayerContext& context) {
  return relu_gradient(dy, more, y, context.kernels && own_kernels_take(y));
}

Classifier::Classifier(const LayerContext& context, const std::string& name)
    : context_(context),
      weight_(context.parameters.id_of(name + ".weight")),
      bias_(context.parameters.id_of(name + ".bias")) {}

at::Tensor Classifier::forward(const at::Tensor& x, Mode mode) {
  const Parameters& p = context_.parameters;
  const at::Tensor weight = p.value(weight_);
  const at::Tensor pooled =
      x.mean(at::IntArrayRef{2, 3}, false, weight.scalar_type());
  if (mode == Mode::kTraining) {
    pooled_ = pooled;
    map_shape_ = x.sizes().vec();
    map_type_ = x.scalar_type();
  }
  return at::addmm(p.value(bias_), pooled, weight.t());
}

// The gradient of a mean over pixels is the same at each of them.
at::Tensor Classifier::feature_gradient(const at::Tensor& dlogits,
                                        at::IntArrayRef map_shape) const {
  const at::Tensor dpooled =
      at::mm(dlogits, context_.parameters.value(weight_));
  const auto pixels = static_cast<double>(map_shape[2] * map_shape[3]);
  return (dpooled / pixels)
      .view({map_shape[0], map_shape[1], 1, 1})
      .expand(map_shape);
}

at::Tensor Classifier::backward(const at::Tensor& dlogits,
                                const MicroBatch& micro_batch) {
  const at::Tensor pooled = std::exchange(pooled_, {});
  assert(pooled.defined() && pooled.size(0) == dlogits.size(0));
  context_.gradients.add(bias_, dlogits.sum(0), micro_batch);
  context_.gradients.add(weight_, at::mm(dlogits.t(), pooled), micro_batch);
  return feature_gradient(dlogits, map_shape_)
      .to(map_type_)
      .contiguous(context_.memory_format);
}

}  // namespace chexnet
