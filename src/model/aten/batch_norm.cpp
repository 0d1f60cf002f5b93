#include "batch_norm.hpp"

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

at::Tensor Activation::forward(const at::Tensor& y, const ForwardPass& pass) {
  if (pass.training() && then_ != Then::kNothing) y_ = y;
  if (then_ == Then::kAveragePool) return average_pool(y);
  if (then_ != Then::kMaxPool) return y;
  auto [pooled, indices] = max_pool(y);
  if (pass.training()) indices_ = indices;
  return pooled;
}

at::Tensor Activation::backward(const at::Tensor& dy) {
  if (then_ == Then::kNothing) return dy;
  const at::Tensor y = std::exchange(y_, {});
  at::Tensor whole = dy;
  if (then_ == Then::kAveragePool)
    whole = average_pool_gradient(dy, y.sizes(), format_);
  if (then_ == Then::kMaxPool)
    whole =
        max_pool_gradient(dy, y.sizes(), format_, std::exchange(indices_, {}));
  return at::threshold_backward(whole, y, 0);
}

BatchNorm::BatchNorm(const LayerContext& context, const std::string& name,
                     Then then)
    : context_(context),
      then_(then),
      statistics_(context.parameters.statistics_id_of(name)),
      weight_(context.parameters.id_of(name + ".weight")),
      bias_(context.parameters.id_of(name + ".bias")),
      activation_(then, context.memory_format) {}

at::Tensor BatchNorm::forward(const at::Tensor& x, const ForwardPass& pass,
                              const MapStatistics& known) {
  return compute(x, pass, known, {}, then_ != Then::kNothing);
}

at::Tensor BatchNorm::forward_onto(const at::Tensor& shortcut,
                                   const at::Tensor& x,
                                   const ForwardPass& pass) {
  assert(then_ == Then::kNothing);
  return compute(x, pass, {}, shortcut, true);
}

// In training by the library's operator, where there is no reason for passes.
at::Tensor BatchNorm::compute(const at::Tensor& x, const ForwardPass& pass,
                              const MapStatistics& known,
                              const std::optional<at::Tensor>& shortcut,
                              bool relu) {
  const Parameters& p = context_.parameters;
  // Kernels give an average's gradient to a sum of readers alone.
  const bool kernels =
      known.mean.defined() ||
      (then_ != Then::kAveragePool && context_.kernels && own_kernels_take(x));
  if (kernels || context_.sync != nullptr || !pass.training())
    return forward_in_passes(
        {{x, p.value(weight_), p.value(bias_), known, relu}, {}, kernels}, pass,
        shortcut);
  at::Tensor y = forward_by_library(x, pass.micro_batch);
  add_and_cut(y, shortcut, relu);
  return activation_.forward(y, pass);
}

at::Tensor BatchNorm::forward_in_passes(
    InPasses call, const ForwardPass& pass,
    const std::optional<at::Tensor>& shortcut) {
  const Parameters& p = context_.parameters;
  const at::Tensor& x = call.input.x;
  MapStatistics& statistics = call.input.statistics;
  std::optional<KeptStatistics> kept;
  if (!pass.training()) {
    statistics = {p.running_mean(statistics_), p.running_var(statistics_)};
  } else {
    kept = {p.batch_mean(statistics_), p.batch_var(statistics_),
            1.0 / pass.micro_batch.count};
    if (!statistics.mean.defined()) {
      statistics = new_statistics(context_, x, x.size(1));
      find_statistics(context_, x, {}, pass.mode, call.kernels, statistics);
    }
  }
  at::Tensor y =
      call.kernels
          ? forward_by_kernels(call, shortcut, kept)
          : activation_.forward(
                batch_norm_apply(call.input, shortcut, kept, false), pass);
  if (!pass.training()) return y;
  // A shortcut's ReLU is another's in backward, and so is Activation's.
  call.input.relu = call.kernels && then_ != Then::kNothing;
  last_ = std::move(call);
  return y;
}

at::Tensor BatchNorm::forward_by_kernels(
    InPasses& call, const std::optional<at::Tensor>& shortcut,
    const std::optional<KeptStatistics>& kept) {
  if (then_ == Then::kAveragePool)
    return batch_norm_average_pool(call.input, kept);
  if (then_ != Then::kMaxPool)
    return batch_norm_apply(call.input, shortcut, kept, true);
  auto [y, argmax] = batch_norm_max_pool(call.input, kept);
  call.argmax = argmax;
  return y;
}

// The operator chooses among the library's kernels, as PyTorch does, and writes
// the batch's mean and unbiased variance where they travel from: the momentum
// 1 / n of micro-batch n makes them the mean over micro-batches.
at::Tensor BatchNorm::forward_by_library(const at::Tensor& x,
                                         const MicroBatch& micro_batch) {
  const Parameters& p = context_.parameters;
  at::Tensor batch_mean = p.batch_mean(statistics_),
             batch_var = p.batch_var(statistics_);
  const auto [y, mean, invstd, reserve] = at::_batch_norm_with_update(
      x, p.value(weight_), p.value(bias_), batch_mean, batch_var,
      1.0 / (micro_batch.index + 1), kBatchNormEpsilon);
  // Of one value per channel the operator makes the unbiased variance 0/0.
  if (x.numel() == x.size(1)) batch_var.zero_();
  last_ = ByLibrary{x, mean, invstd, reserve};
  return y;
}

bool BatchNorm::can_repeat() const {
  const auto* call = std::get_if<InPasses>(&last_);
  return call != nullptr && call->kernels && then_ == Then::kRelu;
}

at::Tensor BatchNorm::repeated() const {
  assert(can_repeat());
  return batch_norm_apply(std::get<InPasses>(last_).input, {}, {}, true);
}

at::Tensor BatchNorm::backward(const at::Tensor& dy,
                               const MicroBatch& micro_batch) {
  at::Tensor dx;
  add_gradients(gradients(dy, dx), micro_batch);
  return dx;
}

void BatchNorm::backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                              const MicroBatch& micro_batch) {
  if (sum.offset.defined()) {
    const InPasses call = std::get<InPasses>(std::exchange(last_, {}));
    assert(call.kernels);
    return add_gradients(batch_norm_add_up(dense(dy), call.input, sum),
                         micro_batch);
  }
  const at::Tensor dx = backward(dy, micro_batch);
  if (sum.map.defined())
    sum.map.add_(dx);
  else
    sum.map = dx;
}

ChannelSums BatchNorm::gradients(const at::Tensor& dy, at::Tensor& dx) {
  const auto last = std::exchange(last_, {});
  if (const auto* call = std::get_if<ByLibrary>(&last))
    return backward_by_library(activation_.backward(dy), *call, dx);
  const auto& call = std::get<InPasses>(last);
  return backward_in_passes(call.kernels ? dense(dy) : activation_.backward(dy),
                            call, dx);
}

ChannelSums BatchNorm::backward_by_library(const at::Tensor& dy,
                                           const ByLibrary& call,
                                           at::Tensor& dx) {
  const Parameters& p = context_.parameters;
  ChannelSums sums;
  std::tie(dx, sums.dweight, sums.dbias) = at::batch_norm_backward(
      dy, call.x, p.value(weight_), p.running_mean(statistics_),
      p.running_var(statistics_), call.mean, call.invstd, true,
      kBatchNormEpsilon, {true, true, true}, call.reserve);
  return sums;
}

// dx needs all ranks' sums; the gradients of weight and bias are this rank's,
// averaged later like all others.
ChannelSums BatchNorm::backward_in_passes(const at::Tensor& dy,
                                          const InPasses& call,
                                          at::Tensor& dx) {
  const auto& [input, argmax, kernels] = call;
  ChannelSums own = batch_norm_sums(dy, argmax, input, kernels);
  ChannelSums all = own;
  if (context_.sync != nullptr)
    std::tie(all.dweight, all.dbias) =
        sums_of_all_ranks(*context_.sync, own.dweight, own.dbias);
  dx = batch_norm_gradient(dy, argmax, input, all, kernels);
  return own;
}

void BatchNorm::add_gradients(const ChannelSums& sums,
                              const MicroBatch& micro_batch) {
  context_.gradients.add(bias_, sums.dbias, micro_batch);
  context_.gradients.add(weight_, sums.dweight, micro_batch);
}

}  // namespace chexnet
