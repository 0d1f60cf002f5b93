// Whether all ranks hold the same weights (train.verify_every). They start
// alike and move by the same reduced gradients, so where bits differ, memory, a
// GPU, a processor or a link after the all-reduce has changed one (silent data
// corruption: Dixit et al., "Silent Data Corruptions at Scale", 2021). What
// changes one rank's gradient before it is summed reaches all ranks alike, and
// is not seen here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/placement.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {

// Weights, running statistics, state of the optimizer, and the average if there
// is one: the sum of their 64-bit words, modulo 2^64. Any one changed bit
// changes it. Waits for the device.
uint64_t state_sum(const Parameters& parameters, TrainStep& step);

// The ranks that are not among the most with one sum, ascending; all of them
// where two sums are held equally often. Empty: all agree.
std::vector<int> dissenters(std::span<const uint64_t> sums);

// Collective. DeviceError, with the same text on all ranks, that names those
// that differ. `placements` of all ranks; `done`, steps.
void check_ranks_agree(Communicator& comm, uint64_t own_sum,
                       const std::vector<PlacementRow>& placements,
                       int64_t done);

// Rank 0, after it has written a checkpoint: DeviceError when its sum is no
// longer the one the ranks agreed on, so that the checkpoint may be wrong.
void check_unchanged(uint64_t agreed, uint64_t own_sum,
                     const PlacementRow& placement, int64_t done);

}  // namespace chexnet
