#include "chexnet/train/run/overlap.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>

#include "chexnet/core/text_format.hpp"

namespace chexnet {

StepTimes StepTimes::since(const StepTimes& before) const {
  return {loading_s - before.loading_s, exposed_s - before.exposed_s,
          data_wait_s - before.data_wait_s, all_s - before.all_s,
          steps - before.steps};
}

Overlap mean_overlap(Communicator& comm, const StepTimes& own) {
  assert(own.steps > 0);
  std::array<double, 4> sums = {own.loading_s, own.data_wait_s, own.all_s,
                                own.exposed_s};
  comm.all_reduce(sums, ReduceOp::kSum);
  const double steps = static_cast<double>(own.steps) * comm.size();
  Overlap overlap;
  overlap.loading_s = sums[0] / steps;
  overlap.step_s = sums[2] / steps;
  const double wait_s = sums[1] / steps;
  overlap.computing_s = overlap.step_s - wait_s;
  if (overlap.loading_s > 0)
    overlap.hidden = std::clamp(1 - sums[3] / sums[0], 0.0, 1.0);
  return overlap;
}

std::string overlap_text(const Overlap& overlap) {
  const auto ms = [](double s) {
    return fixed(1e3 * s, s < 0.01 ? 1 : 0) + " ms";
  };
  return "loading " + ms(overlap.loading_s) + ", computing " +
         ms(overlap.computing_s) + ", step " + ms(overlap.step_s) + ": " +
         fixed(100 * overlap.hidden, 0) + " % of loading hidden";
}

Json overlap_json(const Overlap& overlap) {
  return {{"loading_ms", 1e3 * overlap.loading_s},
          {"computing_ms", 1e3 * overlap.computing_s},
          {"step_ms", 1e3 * overlap.step_s},
          {"hidden", overlap.hidden}};
}

}  // namespace chexnet
