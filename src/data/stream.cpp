// Position g = first_position + step * batch + rank + i * world_size: the
// positions of one step are dealt to the ranks in turn, so the samples of a
// global batch do not depend on how many ranks there are.
#include "chexnet/data/stream.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/balanced.hpp"

namespace chexnet {
namespace {

// Beta(alpha, alpha) for alpha up to 1, by Johnk's rejection (1964); at alpha
// = 1 every second pair is kept, below more. At a small alpha both powers may
// be too small for a double, and their logarithms are compared.
double symmetric_beta(double alpha, Random& random) {
  for (;;) {
    const double u = random.uniform(), v = random.uniform();
    const double x = std::pow(u, 1 / alpha), y = std::pow(v, 1 / alpha);
    if (x + y > 1) continue;
    if (x + y > 0) return x / (x + y);
    const double share =
        1 / (1 + std::exp((std::log(v) - std::log(u)) / alpha));
    if (!std::isnan(share)) return share;
  }
}

}  // namespace

TrainSampler::TrainSampler(std::vector<uint32_t> rows, const StreamPart& part)
    : rows_(std::move(rows)),
      keep_order_(part.keep_order),
      mixup_(part.mixup),
      draw_weights_(part.draw_weights),
      seed_(part.seed),
      first_position_(part.first_position),
      batch_(part.batch),
      rank_(static_cast<uint64_t>(part.rank)),
      world_size_(static_cast<uint64_t>(part.world_size)),
      per_rank_(part.batch / static_cast<uint64_t>(part.world_size)) {
  assert(!rows_.empty());
  assert(part.world_size > 0 && part.rank >= 0 && part.rank < part.world_size);
  assert(batch_ > 0 && batch_ % world_size_ == 0);
  assert(first_position_ % batch_ == 0);
}

uint32_t TrainSampler::row_at(uint64_t position) const {
  const uint64_t epoch = position / rows_.size();
  const size_t index = position % rows_.size();
  if (keep_order_) return rows_[index];
  return orders_.item(epoch, index, [this](uint64_t e) {
    Random random(seed_, Purpose::kOrder, e);
    if (!draw_weights_.empty())
      return weighted_order(rows_, draw_weights_, random);
    auto rows = rows_;
    shuffle(rows, random);
    return rows;
  });
}

Sample TrainSampler::at(uint64_t ticket) const {
  const uint64_t step = ticket / per_rank_;
  const uint64_t position = first_position_ + step * batch_ + rank_ +
                            (ticket % per_rank_) * world_size_;
  Sample sample{.row = row_at(position), .position = position};
  if (mixup_ > 0) draw_partner(sample);
  return sample;
}

// Any image of the epoch, so it depends on no batch and no rank.
void TrainSampler::draw_partner(Sample& sample) const {
  Random random(seed_, Purpose::kMixup, sample.position);
  const uint64_t images = rows_.size();
  const uint64_t first = sample.position / images * images;
  sample.partner = row_at(first + random.below(static_cast<uint32_t>(images)));
  // Which of the two is called the partner makes no difference.
  const double share = symmetric_beta(mixup_, random);
  sample.share = std::max(share, 1 - share);
}

EvalSampler::EvalSampler(std::vector<uint32_t> rows, int rank, int world_size)
    : rows_(std::move(rows)),
      rank_(static_cast<uint64_t>(rank)),
      world_size_(static_cast<uint64_t>(world_size)) {}

Sample EvalSampler::at(uint64_t ticket) const {
  const uint64_t index = ticket * world_size_ + rank_;
  if (index >= rows_.size())
    return {.row = 0, .position = index, .padding = true};
  return {.row = rows_[index], .position = index};
}

}  // namespace chexnet
