// The plan's bytes grow with the batch, so the largest that fits is found by
// bisection. Ranks may have different memory: each finds its own answer and the
// smallest counts (as the maximum of negative numbers, for ReduceOp has no
// minimum).
#include "chexnet/train/auto_batch.hpp"

#include <algorithm>
#include <cassert>
#include <span>
#include <string>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

std::int64_t auto_batch(const Config& config, const Network& network,
                        Communicator& comm, const BatchLimits& limits) {
  assert(limits.images > 0);
  const std::int64_t side = config.data.crop;
  if (!network.planned_bytes(1, side))
    throw ConfigError(
        "[train] train.batch: auto needs the memory plan of our own engine, "
        "which does not compute "
        "here. Hint: name a number");
  constexpr double kShare =
      0.9;  // the rest for libraries, files and the system
  constexpr double kRingBatches = 8;  // of bytes, in the loader
  constexpr double kOptimizerSlots = 2;
  const double budget =
      kShare * static_cast<double>(limits.host_bytes) /
          comm.world().local_size -
      kOptimizerSlots *
          static_cast<double>(network.parameters().flat_values().nbytes());
  // Images a rank holds at once, and of a whole step.
  const auto fits = [&](std::int64_t micro_batch) {
    const auto ring =
        kRingBatches * static_cast<double>(
                           micro_batch * config.train.accumulate * side * side);
    return static_cast<double>(*network.planned_bytes(micro_batch, side)) +
               ring <=
           budget;
  };
  const std::int64_t pieces = comm.size() * config.train.accumulate;
  std::int64_t low = 0,
               high = std::max<std::int64_t>(limits.images / pieces, 1);
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  double smallest = -static_cast<double>(low);
  comm.all_reduce(std::span(&smallest, 1), ReduceOp::kMax);
  const auto agreed = static_cast<std::int64_t>(-smallest);
  if (agreed == 0)
    throw ConfigError(
        "[train] not even one image per rank fits into " +
        readable_bytes(std::max(budget, 0.0)) +
        ". Hint: fewer ranks on this host, or a smaller data.crop");
  return agreed * pieces;
}

}  // namespace chexnet
