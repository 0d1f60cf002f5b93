#include "chexnet/train/step_outcomes.hpp"

#include <ATen/ATen.h>

#include <cassert>
#include <optional>
#include <utility>

namespace chexnet {

void StepOutcomes::send(const StepResult& result, const at::Tensor& figures) {
  under_way_.push_back({result, HostCopy(figures)});
}

StepResult StepOutcomes::take() {
  assert(!under_way_.empty());
  UnderWay taken = std::move(under_way_.front());
  under_way_.pop_front();
  // The host is ahead of a device: it waits for what the device computes.
  std::optional<Profiler::Span> span;
  if (!device_.is_cpu())
    span.emplace(profiler_, Phase::kBackward, "computing on the GPU");
  const auto* figures = taken.figures.wait().const_data_ptr<double>();
  taken.result.loss_sum = figures[0];
  taken.result.gradient_norm = figures[1];
  taken.result.applied = figures[2] == 0;
  return taken.result;
}

}  // namespace chexnet
