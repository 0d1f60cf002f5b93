// What each rank of a world of threads comes to, for the thread of the test to
// look at: Catch's assertions belong to one thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "support/thread_world.hpp"

namespace chexnet {

// body(comm) of every rank, by rank.
template <class Body>
auto rank_results(int ranks, const Body& body) {
  using Result = decltype(body(std::declval<Communicator&>()));
  std::vector<std::optional<Result>> slots(static_cast<size_t>(ranks));
  ThreadWorld(ranks).run([&](Communicator& comm) {
    slots[static_cast<size_t>(comm.rank())].emplace(body(comm));
  });
  std::vector<Result> results;
  for (auto& slot : slots) results.push_back(std::move(*slot));
  return results;
}

}  // namespace chexnet
