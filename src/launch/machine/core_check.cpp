#include "chexnet/launch/machine/core_check.hpp"

#include <map>
#include <set>
#include <string>

#include "chexnet/core/text_format.hpp"

namespace chexnet {

CheckResult check_cores(const std::vector<RankCores>& ranks) {
  std::map<int, int> first_on;  // a core -> the first rank on it
  std::set<int> sharing;        // ranks
  int threads = 0;
  for (const auto& rank : ranks) {
    threads += rank.threads;
    for (const int core : rank.cores) {
      const auto [other, is_first] = first_on.insert({core, rank.rank});
      if (!is_first) sharing.insert({rank.rank, other->second});
    }
  }
  const auto cores = static_cast<int>(first_on.size());
  CheckResult result;
  result.name = "cores";
  result.text = counted(static_cast<int>(ranks.size()), "rank") + " with " +
                counted(threads, "thread") + " on " + counted(cores, "core");
  if (sharing.empty() && threads <= cores) return result;

  result.level = Level::kWarn;
  if (sharing.empty()) {
    result.text += ": threads wait for each other";
    result.advice =
        "fewer of launch.threads (or OMP_NUM_THREADS), or more cores from the "
        "batch system (-c)";
    return result;
  }
  std::string names;
  for (const int rank : sharing)
    names += (names.empty() ? "" : ", ") + std::to_string(rank);
  result.text += ": ranks " + names + " run on the same ones";
  result.advice =
      "fewer ranks on this host (--ranks), or more cores from the batch system "
      "(-c)";
  return result;
}

}  // namespace chexnet
