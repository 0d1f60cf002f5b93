// Equal on all ranks, because the reduced gradient is: no agreement is needed.
// A gradient that is not finite must not reach the gaps of the flat buffer,
// which no backward writes: 0 times a factor is 0 only where the factor is
// finite, so a factor is made 1 where it is not.
#include "chexnet/train/gradient_control.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace chexnet {
namespace {

// PyTorch's GradScaler and LossScale agree on these (train/run/loss_scale.hpp).
constexpr double kGrowth = 2, kBackoff = 0.5;
constexpr int64_t kGrowthInterval = 2000;

// On the CPU summed over fixed pieces in double, so that it does not depend on
// threads. On GPUs `_foreach_norm` has fixed pieces too (65,536 values), where
// `linalg_vector_norm` divides by the number of multiprocessors: ranks on GPUs
// of two models would clip by different last bits.
at::Tensor norm_of(const at::Tensor& flat) {
  if (!flat.is_cpu()) return at::_foreach_norm(flat)[0].to(at::kDouble);
  constexpr int64_t kPiece = 1 << 15, kLanes = 8;
  const int64_t pieces = (flat.numel() + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<size_t>(pieces));
  const auto sum = [&](const auto* values) {
    at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        std::array<double, kLanes> part{};
        const auto add = [&](int64_t i, int64_t lane) {
          const auto value = static_cast<double>(values[i]);
          part[static_cast<size_t>(lane)] += value * value;
        };
        const int64_t last = std::min(flat.numel(), (p + 1) * kPiece);
        int64_t i = p * kPiece;
        // A loop over lanes, so that the compiler makes vectors of them.
        for (; i + kLanes <= last; i += kLanes)
          for (int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
        for (; i < last; ++i) add(i, i % kLanes);
        sums[static_cast<size_t>(p)] =
            std::accumulate(part.begin(), part.end(), 0.0);
      }
    });
  };
  if (flat.scalar_type() == at::kDouble)
    sum(flat.const_data_ptr<double>());
  else
    sum(flat.const_data_ptr<float>());
  const double squares = std::accumulate(sums.begin(), sums.end(), 0.0);
  return at::scalar_tensor(std::sqrt(squares), at::kDouble);
}

// On the CPU a pass over the gradient costs more than a test of the factor.
bool is_one(const at::Tensor& factor) {
  return factor.is_cpu() && *factor.const_data_ptr<double>() == 1.0;
}

}  // namespace

GradientControl::GradientControl(const at::Tensor& like, double clip_norm,
                                 const LossScale& scale)
    : clip_norm_(clip_norm),
      dynamic_(scale.dynamic),
      scales_(scale.dynamic || scale.value != 1) {
  const auto number = like.options().dtype(at::kFloat);
  scale_ = at::empty({}, number);
  good_ = at::empty({}, number.dtype(at::kInt));
  set_loss_scale(scale);
}

at::Tensor GradientControl::scaled(const at::Tensor& dlogits) const {
  return scales_ ? dlogits * scale_.to(dlogits.scalar_type()) : dlogits;
}

void GradientControl::apply(const at::Tensor& gradients) {
  norm_ = norm_of(gradients);
  not_finite_ = at::isfinite(norm_).logical_not().to(at::kFloat);
  at::Tensor factor;
  if (scales_) {
    factor = scale_.to(at::kDouble).reciprocal();
    norm_ = norm_ * factor;
  }
  if (clip_norm_ > 0) {
    const at::Tensor clip =
        at::nan_to_num(norm_.reciprocal() * clip_norm_, 1.0, 1.0).clamp_max(1);
    factor = factor.defined() ? factor * clip : clip;
  }
  if (factor.defined() && !is_one(factor))
    gradients.mul_(factor.to(gradients.scalar_type()));
  if (!dynamic_) return;
  at::_amp_update_scale_(scale_, good_, not_finite_, kGrowth, kBackoff,
                         kGrowthInterval);
  scale_.clamp_min_(1);
}

LossScale GradientControl::loss_scale() const {
  return {scale_.item<double>(), good_.item<int64_t>(), dynamic_};
}

void GradientControl::set_loss_scale(const LossScale& scale) {
  scale_.fill_(scale.value);
  good_.fill_(scale.good);
}

}  // namespace chexnet
