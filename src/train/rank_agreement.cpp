#include "rank_agreement.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

uint64_t sum_of_words(const at::Tensor& flat) {
  assert(flat.is_contiguous() && flat.nbytes() % sizeof(int64_t) == 0);
  return static_cast<uint64_t>(flat.view(at::kLong).sum().item<int64_t>());
}

}  // namespace

uint64_t state_sum(const Parameters& parameters, TrainStep& step) {
  uint64_t sum = sum_of_words(parameters.flat_values()) +
                 sum_of_words(parameters.flat_running());
  for (const auto& [name, flat] : step.optimizer().slots())
    sum += sum_of_words(flat);
  const WeightAverage& average = step.average();
  if (average.is_on())
    sum += sum_of_words(average.values()) + sum_of_words(average.running());
  return sum;
}

std::vector<int> dissenters(std::span<const uint64_t> sums) {
  std::map<uint64_t, int> held;
  for (const uint64_t sum : sums) ++held[sum];
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second < b.second;
  };
  const auto most = std::ranges::max_element(held, fewer);
  const bool is_clear = std::ranges::count_if(held, [&](const auto& h) {
                          return h.second == most->second;
                        }) == 1;
  std::vector<int> found;
  for (size_t rank = 0; rank < sums.size(); ++rank)
    if (!is_clear || sums[rank] != most->first)
      found.push_back(static_cast<int>(rank));
  return found;
}

void check_ranks_agree(Communicator& comm, uint64_t own_sum,
                       const std::vector<PlacementRow>& placements,
                       int64_t done) {
  assert(placements.size() == static_cast<size_t>(comm.size()));
  std::vector<uint64_t> sums;
  for (const auto& bytes :
       comm.all_gather(std::as_bytes(std::span(&own_sum, 1)))) {
    assert(bytes.size() == sizeof(uint64_t));
    std::memcpy(&sums.emplace_back(), bytes.data(), sizeof(uint64_t));
  }
  const std::vector<int> differ = dissenters(sums);
  if (differ.empty()) return;
  std::string who;
  for (const int rank : differ)
    who += (who.empty() ? "" : ", ") +
           named(placements[static_cast<size_t>(rank)]);
  const char* others = ", and which is right cannot be told from so few";
  if (differ.size() < sums.size())
    others = differ.size() == 1 ? " differs from all others"
                                : " differ from all others";
  throw DeviceError(
      "[train] after step {} the ranks hold different weights: {}{}. Memory, a "
      "processor, a GPU or the network has changed a bit. Hint: checkpoints "
      "are written only while all ranks agree, so a restart or --resume goes "
      "back to the last; leave out a host that is named again. Ranks on "
      "processors that compute differently: train.verify_every=0",
      done, who, others);
}

void check_unchanged(uint64_t agreed, uint64_t own_sum,
                     const PlacementRow& placement, int64_t done) {
  if (own_sum == agreed) return;
  throw DeviceError(
      "[train] after step {} the weights of {} changed while the checkpoint "
      "was written, so it is thrown away. Memory, a processor or a GPU has "
      "changed a bit. Hint: a restart or --resume goes back to the checkpoint "
      "before; leave out a host that is named again",
      done, named(placement));
}

}  // namespace chexnet
