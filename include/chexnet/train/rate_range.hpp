// Trains a few steps at rising rates, from the weights and on the images that a
// run of the config begins with.
#pragma once

#include <cstdint>
#include <functional>

#include "chexnet/train/run/rate_curve.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// Rates are those of train.lr: train.lr_scaling applies to them. `batch`:
// images of a step, all ranks. Calls `show` with the next step. Collective: the
// same curve on every rank, and up to rounding on any number of ranks where
// BatchNorm is synchronized. DataError as training's, of damaged images. Leaves
// the network trained.
RateCurve measure_rates(const RunContext& run, int64_t batch,
                        const RateRange& range,
                        const std::function<void(int64_t step)>& show);

}  // namespace chexnet
