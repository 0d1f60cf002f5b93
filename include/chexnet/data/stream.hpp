// The endless order of training samples: position g = epoch * N + i. Each epoch
// is a new permutation of the split, or N draws by weight (train.sampling), or
// the order of a file. A pure function of (seed, position); step k of global
// batch B takes positions [k*B, (k+1)*B), and position p of those goes to rank
// p mod R. A resume therefore needs the position alone, on any number of ranks.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace chexnet {

struct Sample {
  uint32_t row = 0;       // of the manifest
  uint64_t position = 0;  // in the training order; keys the augmentation
  bool padding = false;   // fills a batch; its row is not read
  // Mixup: the sample is share x (row) + (1 - share) x (partner), pixels and
  // labels alike.
  double share = 1;
  uint32_t partner = 0;  // row; read where share < 1
};

// The augmentation of a partner is drawn for a position that no sample has.
constexpr uint64_t partner_position(uint64_t position) {
  return position | (uint64_t{1} << 63);
}

// The samples of a loader: sample `ticket` (0, 1, …) of one rank. Thread-safe.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Sample at(uint64_t ticket) const = 0;
  // Rows that this rank must decode for that ticket and throw away; only the
  // pipeline `old` has any.
  virtual void discarded(uint64_t, std::vector<uint32_t>& rows) const {
    rows.clear();
  }
};

// The orders of the two epochs that workers are in. Thread-safe.
class EpochOrders {
 public:
  // Item `index` of epoch `epoch`; `make(epoch)` gives the order when it is not
  // at hand.
  template <class Make>
  uint32_t item(uint64_t epoch, size_t index, Make make) const {
    const std::lock_guard lock(mutex_);
    for (const auto& order : orders_)
      if (order.epoch == epoch) return order.items[index];
    if (orders_.size() == 2) orders_.erase(orders_.begin());
    orders_.push_back({epoch, make(epoch)});
    return orders_.back().items[index];
  }

 private:
  struct Order {
    uint64_t epoch;
    std::vector<uint32_t> items;
  };
  mutable std::mutex mutex_;           // guards orders_
  mutable std::vector<Order> orders_;  // oldest first
};

// Which part of the training order a rank walks.
struct StreamPart {
  uint64_t seed = 1;        // of the epochs' orders
  bool keep_order = false;  // the rows as they are, in each epoch
  // Alpha of Beta(alpha, alpha), (0, 1], from which the share of mixup is drawn
  // (Zhang et al., ICLR 2018); 0 = off.
  double mixup = 0;
  // [rows] (balanced.hpp); empty = equal
  std::vector<double> draw_weights = {};
  uint64_t batch = 1;  // samples of all ranks; a multiple of world_size
  uint64_t first_position = 0;  // a multiple of batch
  int rank = 0, world_size = 1;
};

// The training order of one rank.
class TrainSampler final : public Sampler {
 public:
  // `rows`, not empty, is permuted anew each epoch, or drawn from by
  // draw_weights.
  TrainSampler(std::vector<uint32_t> rows, const StreamPart& part);
  Sample at(uint64_t ticket) const override;
  uint32_t row_at(uint64_t position) const;

 private:
  void draw_partner(Sample& sample) const;

  std::vector<uint32_t> rows_;
  bool keep_order_;
  double mixup_;
  std::vector<double> draw_weights_;
  uint64_t seed_, first_position_, batch_, rank_, world_size_, per_rank_;
  EpochOrders orders_;
};

// Each row of a split once: rank r takes rows r, r+R, …; every rank gets the
// same number of tickets, the rest is padding.
class EvalSampler final : public Sampler {
 public:
  EvalSampler(std::vector<uint32_t> rows, int rank, int world_size);
  Sample at(uint64_t ticket) const override;

 private:
  std::vector<uint32_t> rows_;
  uint64_t rank_, world_size_;
};

}  // namespace chexnet
