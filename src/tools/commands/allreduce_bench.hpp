// How fast ranks exchange data, as nccl-tests counts: all-reduces of growing
// size through the communicator that training uses.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

struct AllReduceRow {
  double bytes = 0, us = 0;  // median of the rounds, of the slowest rank
  double alg_gb_per_s = 0;   // bytes / time
  double bus_gb_per_s = 0;  // x 2 (n - 1) / n: what each link carries in a ring
};

// fp32 sums of `bytes` each (multiples of 4), ascending. Collective; the same
// rows on every rank.
std::vector<AllReduceRow> measure_allreduce(Communicator& comm,
                                            const Device& device,
                                            const std::vector<double>& bytes,
                                            int rounds);

// Median time of a barrier, microseconds. Collective.
double barrier_us(Communicator& comm, int rounds);

}  // namespace chexnet
