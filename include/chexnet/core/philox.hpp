// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Every draw is a pure function of
// (seed, purpose, position, index), so nothing depends on threads, ranks or
// restarts.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace chexnet {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// What a sequence of random numbers is for; keeps draws of one position
// independent of each other.
enum class Purpose : uint32_t {
  kOrder = 1,
  kAugment = 2,
  kWeights = 3,
  kSplit = 4,
  kPhantom = 5,
  kTest = 6,
  kBootstrap = 7,
  kMixup = 8,
};

// The sequence of numbers that belongs to one (seed, purpose, position). Not
// shared between threads.
class Random {
 public:
  Random(uint64_t seed, Purpose purpose, uint64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, static_cast<uint32_t>(purpose),
                 static_cast<uint32_t>(position),
                 static_cast<uint32_t>(position >> 32)} {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  // In [0, 1) with 53 random bits.
  double uniform() {
    const uint64_t high = next();
    return static_cast<double>(((high << 32) | next()) >> 11) * 0x1p-53;
  }
  double uniform(double low, double high) {
    return low + (high - low) * uniform();
  }
  // In [0, n), n > 0, without modulo bias (Lemire's multiplication with
  // rejection).
  uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{next()} * n;
    if (static_cast<uint32_t>(product) < n) {
      const uint32_t threshold = -n % n;
      while (static_cast<uint32_t>(product) < threshold)
        product = uint64_t{next()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }
  bool chance(double probability) { return uniform() < probability; }
  // Standard normal (Box-Muller).
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;
  bool has_spare_ = false;
};

// Fisher and Yates.
template <class Item>
void shuffle(std::vector<Item>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[random.below(static_cast<uint32_t>(i))]);
}

}  // namespace chexnet
