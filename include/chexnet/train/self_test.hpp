// Does this GPU compute what the CPU engine computes? One synthetic step on
// both, compared layer by layer, and one all-reduce in buckets compared with
// its definition. So the first machine with such a GPU checks code that we
// could not test on one, before it trains.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/choices.hpp"
#include "chexnet/model/backend.hpp"
#include "chexnet/model/step_comparison.hpp"

namespace chexnet {

struct SelfTestSubject {
  std::string arch;
  Precision precision = Precision::kFp32;  // of the run
  GradientCompression compression = GradientCompression::kNone;
  bool own_kernels = true;      // of a GPU; false: train.engine=aten
  bool sync_batchnorm = false;  // over all ranks, which have the same images
};

// Worst element of a mean over ranks, relative to the largest element.
struct ReductionCheck {
  double difference = 0, allowed = 0;
};

struct SelfTestResult {
  struct Step {
    Precision precision;
    std::vector<LayerDifference> layers;  // in the order of computation
  };
  // fp32, in which a wrong layer cannot hide behind rounding, and the run's
  // precision where it is another.
  std::vector<Step> steps;
  ReductionCheck reduction;
  double seconds = 0;
  // Of this rank: "" or what disagrees first.
  std::string problem() const;
  // One line: the step closest to its bound.
  std::string summary() const;
};

// Collective. Computes on `where` by the first of `backends` that takes the
// step, and on the CPU in fp64. Does not throw on disagreement. A device that
// does not finish a step in `timeout_s` ends the process with exit code 7.
SelfTestResult self_test(
    const SelfTestSubject& subject, at::Device where, Communicator& comm,
    double timeout_s,
    const std::vector<BackendEntry>& backends = default_backends());

// Collective. The all-reduce of a synthetic gradient buffer on `where`, in
// buckets, against the mean of what the ranks hold.
ReductionCheck check_reduction(GradientCompression compression,
                               at::Device where, Communicator& comm);

}  // namespace chexnet
