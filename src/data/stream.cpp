// Position g = first_position + step * batch + rank + i * world_size: the
// positions of one step are dealt to the ranks in turn, so the samples of a
// global batch do not depend on how many ranks there are.
#include "chexnet/data/stream.hpp"

#include <cassert>
#include <utility>

#include "chexnet/core/philox.hpp"

namespace chexnet {

TrainSampler::TrainSampler(std::vector<std::uint32_t> rows,
                           const StreamPart& part)
    : rows_(std::move(rows)),
      keep_order_(part.keep_order),
      seed_(part.seed),
      first_position_(part.first_position),
      batch_(part.batch),
      rank_(static_cast<std::uint64_t>(part.rank)),
      world_size_(static_cast<std::uint64_t>(part.world_size)),
      per_rank_(part.batch / static_cast<std::uint64_t>(part.world_size)) {
  assert(!rows_.empty());
  assert(part.world_size > 0 && part.rank >= 0 && part.rank < part.world_size);
  assert(batch_ > 0 && batch_ % world_size_ == 0);
  assert(first_position_ % batch_ == 0);
}

std::uint32_t TrainSampler::row_at(std::uint64_t position) const {
  const std::uint64_t epoch = position / rows_.size();
  const std::size_t index = position % rows_.size();
  if (keep_order_) return rows_[index];
  return orders_.item(epoch, index, [this](std::uint64_t e) {
    auto rows = rows_;
    Random random(seed_, Purpose::kOrder, e);
    shuffle(rows, random);
    return rows;
  });
}

Sample TrainSampler::at(std::uint64_t ticket) const {
  const std::uint64_t step = ticket / per_rank_;
  const std::uint64_t position = first_position_ + step * batch_ + rank_ +
                                 (ticket % per_rank_) * world_size_;
  return {row_at(position), position, false};
}

EvalSampler::EvalSampler(std::vector<std::uint32_t> rows, int rank,
                         int world_size)
    : rows_(std::move(rows)),
      rank_(static_cast<std::uint64_t>(rank)),
      world_size_(static_cast<std::uint64_t>(world_size)) {}

Sample EvalSampler::at(std::uint64_t ticket) const {
  const std::uint64_t index = ticket * world_size_ + rank_;
  if (index >= rows_.size()) return {0, index, true};
  return {rows_[index], index, false};
}

}  // namespace chexnet
