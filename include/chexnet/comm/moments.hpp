// Mean and variance of channels over the pixels of all ranks, for synchronized
// BatchNorm.
#pragma once

#include <span>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// Replaces each channel's mean and sum of squared deviations by those of the
// union of all ranks' pixels (Chan, Golub and LeVeque, 1979: a difference of
// large sums would lose digits), in rank order, so equal on every rank. `count`
// is the pixels a channel has here, and becomes the total.
void combine_moments(Communicator& comm, std::span<double> mean,
                     std::span<double> deviations, double& count);

}  // namespace chexnet
