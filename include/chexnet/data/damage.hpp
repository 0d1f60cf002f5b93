// How many damaged images a run accepts. Damaged: its bytes came, and cannot be
// decoded or have a wrong checksum. An image that did not come is no damage
// (AbsentError, OutageError) and never left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"

namespace chexnet {

struct DamagePolicy {
  bool skip = false;
  double limit = 0;  // a fraction
  static DamagePolicy of(const DataConfig& config);
  // Of `images`. One is always allowed, unless the limit is 0: small sets have
  // no 1 %.
  uint64_t allowed(uint64_t images) const;
  // "3 of 40 images are damaged", and what the policy allows.
  std::string text(uint64_t damaged, uint64_t images) const;
  std::string hint() const;
};

// Messages about damaged images, [rank][in its order].
using DamageByRank = std::vector<std::vector<std::string>>;
uint64_t count(const DamageByRank& damage);

// All ranks call, each with the messages of its damaged ones out of `images` of
// all ranks. Returns everybody's; DataError "[origin] N of M images are
// damaged" + `more` on all ranks, with the first messages, when there are more
// than allowed.
DamageByRank accept_damage(const DamagePolicy& policy,
                           const std::vector<std::string>& own, uint64_t images,
                           const std::string& origin, const std::string& more,
                           Communicator& comm);

}  // namespace chexnet
