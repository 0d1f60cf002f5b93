#include "chexnet/train/step_outcomes.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cassert>

namespace chexnet {

void StepOutcomes::send(const StepResult& result, const at::Tensor& loss_sum,
                        const at::Tensor& gradient_norm,
                        const at::Tensor& not_finite) {
  UnderWay sent{result, {}, std::nullopt};
  const at::Tensor figures =
      at::stack({loss_sum.to(at::kDouble), gradient_norm.to(at::kDouble),
                 not_finite.to(at::kDouble)});
  if (device_.is_cpu()) {
    sent.figures = figures;
  } else {
    sent.figures =
        at::empty({3}, at::TensorOptions(at::kDouble).pinned_memory(true));
    sent.figures.copy_(figures, true);
    const c10::impl::VirtualGuardImpl streams(device_.type());
    sent.copied.emplace(device_.type());
    sent.copied->record(streams.getStream(device_));
  }
  under_way_.push_back(std::move(sent));
}

StepResult StepOutcomes::take() {
  assert(!under_way_.empty());
  UnderWay taken = std::move(under_way_.front());
  under_way_.pop_front();
  if (taken.copied) {
    // The host is ahead: what it waits for is what the device computes.
    const Profiler::Span span(profiler_, Phase::kBackward,
                              "computing on the GPU");
    taken.copied->synchronize();
  }
  const auto* figures = taken.figures.const_data_ptr<double>();
  taken.result.loss_sum = figures[0];
  taken.result.gradient_norm = figures[1];
  taken.result.applied = figures[2] == 0;
  return taken.result;
}

}  // namespace chexnet
