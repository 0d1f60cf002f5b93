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

at::Tensor per_channel(const at::Tensor& t) { return t.view({1, -1, 1, 1}); }

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

at::Tensor BatchNorm::forward(const at::Tensor& x, const ForwardPass& pass) {
  return compute(x, pass, {}, relu_);
}

at::Tensor BatchNorm::forward_onto(const at::Tensor& shortcut,
                                   const at::Tensor& x,
                                   const ForwardPass& pass) {
  assert(!relu_);
  return compute(x, pass, shortcut, true);
}

at::Tensor BatchNorm::compute(const at::Tensor& x, const ForwardPass& pass,
                              const std::optional<at::Tensor>& shortcut,
                              bool relu) {
  const Parameters& p = context_.parameters;
  const BatchNormInput input{x, p.value(weight_), p.value(bias_), relu};
  const bool kernels = context_.kernels && own_kernels_take(x);
  if (!pass.training())
    return batch_norm_inference(input, p.running_mean(statistics_),
                                p.running_var(statistics_), shortcut, kernels);
  kernels_ = kernels && context_.sync == nullptr;
  at::Tensor y;
  if (kernels_) {
    at::Tensor mean = p.batch_mean(statistics_), var = p.batch_var(statistics_);
    std::tie(y, mean_, invstd_) = batch_norm_training(
        input, mean, var, 1.0 / (pass.micro_batch.index + 1), shortcut);
  } else {
    y = context_.sync != nullptr ? forward_synchronized(x, pass.micro_batch)
                                 : forward_own(x, pass.micro_batch);
    add_and_cut(y, shortcut, relu);
  }
  x_ = x;
  if (relu_) y_ = y;
  return y;
}

// The operator chooses among the library's kernels, as PyTorch does, and writes
// the batch's mean and unbiased variance where they travel from: the momentum
// 1 / n of micro-batch n makes them the mean over micro-batches.
at::Tensor BatchNorm::forward_own(const at::Tensor& x,
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

// The moments of all ranks' pixels from each rank's, in rank order and in
// double, as in comm/moments.hpp. Running variances take n / (n - 1), as
// PyTorch's do.
at::Tensor BatchNorm::forward_synchronized(const at::Tensor& x,
                                           const MicroBatch& micro_batch) {
  const Parameters& p = context_.parameters;
  const auto type = p.value(weight_).scalar_type();
  const int64_t channels = x.size(1), own_pixels = x.numel() / channels;
  at::Tensor sent_mean = p.batch_mean(statistics_),
             sent_var = p.batch_var(statistics_);
  // Momentum 0: the two stay as they are.
  const auto [own_mean, own_var] =
      at::batch_norm_update_stats(x, sent_mean, sent_var, 0);
  const auto wide = sent_mean.options().dtype(at::kDouble);
  const at::Tensor all = of_all_ranks(
      *context_.sync,
      at::cat({own_mean.to(at::kDouble), own_var.to(at::kDouble),
               at::full({1}, static_cast<double>(own_pixels), wide)}));
  const at::Tensor means = all.narrow(1, 0, channels),
                   vars = all.narrow(1, channels, channels),
                   pixels = all.narrow(1, 2 * channels, 1);
  pixels_ = pixels.sum();
  const at::Tensor mean = (means * pixels).sum(0) / pixels_;
  const at::Tensor var =
      ((vars + (means - mean).square()) * pixels).sum(0) / pixels_;
  const double weight = 1.0 / micro_batch.count;
  sent_mean.add_(mean, weight);
  sent_var.add_(var * (pixels_ / (pixels_ - 1).clamp_min(1)), weight);
  mean_ = mean.to(type);
  var_ = var.to(type);
  invstd_ = (var + kBatchNormEpsilon).rsqrt().to(type);
  return std::get<0>(at::native_batch_norm(x, p.value(weight_), p.value(bias_),
                                           mean_, var_, false, 0.0,
                                           kBatchNormEpsilon));
}

at::Tensor BatchNorm::backward(const at::Tensor& dy,
                               const MicroBatch& micro_batch,
                               const std::optional<at::Tensor>& more) {
  const Parameters& p = context_.parameters;
  const at::Tensor y = std::exchange(y_, {});
  at::Tensor dx, dw, db;
  if (kernels_) {
    const BatchNormInput input{std::exchange(x_, {}), p.value(weight_),
                               p.value(bias_), relu_};
    std::tie(dx, dw, db) = batch_norm_gradients(
        dy, input, relu_ ? std::optional(y) : std::nullopt,
        std::exchange(mean_, {}), std::exchange(invstd_, {}), more);
  } else {
    const at::Tensor masked = relu_ ? at::threshold_backward(dy, y, 0) : dy;
    if (context_.sync != nullptr) {
      std::tie(dx, dw, db) = backward_synchronized(masked);
    } else {
      std::tie(dx, dw, db) = at::batch_norm_backward(
          masked, std::exchange(x_, {}), p.value(weight_),
          p.running_mean(statistics_), p.running_var(statistics_),
          std::exchange(mean_, {}), std::exchange(invstd_, {}), true,
          kBatchNormEpsilon, {true, true, true}, std::exchange(reserve_, {}));
    }
    if (more) dx.add_(*more);
  }
  context_.gradients.add(bias_, db, micro_batch);
  context_.gradients.add(weight_, dw, micro_batch);
  return dx;
}

// With z = (x - mean) * invstd and means over all ranks' pixels,
// dx = w * invstd * (dy - mean(dy) - z * mean(dy * z)); the gradients of weight
// and bias are this rank's sums of dy * z and dy, averaged later like all
// others (Ioffe and Szegedy, 2015). The operator gives them as in inference,
// whose statistics are constants.
std::tuple<at::Tensor, at::Tensor, at::Tensor> BatchNorm::backward_synchronized(
    const at::Tensor& dy) {
  const Parameters& p = context_.parameters;
  const at::Tensor x = std::exchange(x_, {}), mean = std::exchange(mean_, {}),
                   invstd = std::exchange(invstd_, {});
  const at::Tensor& weight = p.value(weight_);
  const auto [none, dw, db] = at::native_batch_norm_backward(
      dy, x, weight, mean, std::exchange(var_, {}), mean, invstd, false,
      kBatchNormEpsilon, {false, true, true});
  const at::Tensor means =
      of_all_ranks(*context_.sync, at::cat({db, dw}).to(at::kDouble)).sum(0) /
      std::exchange(pixels_, {});
  const int64_t channels = x.size(1);
  const at::Tensor mean_dy = means.narrow(0, 0, channels).to(weight.dtype()),
                   mean_dyz =
                       means.narrow(0, channels, channels).to(weight.dtype());
  const at::Tensor scale = weight * invstd;
  at::Tensor dx = dy * per_channel(scale);
  dx.sub_(per_channel(scale * mean_dy));
  dx.addcmul_(x - per_channel(mean), per_channel(scale * invstd * mean_dyz),
              -1);
  return {dx.to(dy.scalar_type()), dw, db};
}

at::Tensor MaxPool::forward(const at::Tensor& x, const ForwardPass& pass) {
  const bool kernels = context_.kernels && own_kernels_take(x);
  auto [y, chosen] = max_pool(x, kernels);
  if (pass.training()) {
    kernels_ = kernels;
    x_ = x;
    chosen_ = chosen;
  }
  return y;
}

at::Tensor MaxPool::backward(const at::Tensor& dy) {
  return max_pool_gradient(dy, std::exchange(x_, {}),
                           std::exchange(chosen_, {}), kernels_);
}

at::Tensor AveragePool::forward(const at::Tensor& x, const ForwardPass& pass) {
  const bool kernels = context_.kernels && own_kernels_take(x);
  if (pass.training()) {
    kernels_ = kernels;
    x_ = x;
  }
  return average_pool(x, kernels);
}

at::Tensor AveragePool::backward(const at::Tensor& dy) {
  return average_pool_gradient(dy, std::exchange(x_, {}), kernels_);
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
