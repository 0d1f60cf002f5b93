// What `doctor` says of the cores that the ranks of a host use.
#pragma once

#include <vector>

#include "chexnet/launch/machine/health.hpp"

namespace chexnet {

struct RankCores {
  int rank = 0;
  std::vector<int> cores;  // physical ones, by a number of each
  int threads = 1;         // compute threads
};
// Of all ranks of one host: whether each has cores of its own, and as many of
// them as there are threads.
CheckResult check_cores(const std::vector<RankCores>& ranks);

}  // namespace chexnet
