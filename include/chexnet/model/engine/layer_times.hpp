// Where the time of a step goes, by kind of layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/storage.hpp"

namespace chexnet {

enum class PassKind {
  kStemForward,
  kPointwiseForward,
  kConv3Forward,
  kClassifierHead,
  kConv3Backward,
  kPointwiseBackward,
  kStemBackward,
  kResidual,
};
inline constexpr int kPassKinds = 8;
const char* pass_name(PassKind kind);

struct LayerTimes {
  struct Entry {
    double seconds = 0;
    double flops = 0;  // of the direct algorithm: 2 a multiply-add
    double bytes = 0;  // read from and written to maps, once each
    int64_t passes = 0;
  };
  std::array<Entry, kPassKinds> entries{};
  Entry& of(PassKind kind) { return entries[static_cast<size_t>(kind)]; }
  const Entry& of(PassKind kind) const {
    return entries[static_cast<size_t>(kind)];
  }
  // Parallel work, each thread with its own times: the sum of the work, and the
  // mean time of the threads that had work.
  void add_mean_of(std::span<const LayerTimes> threads);
};

// The limits of this machine's cores together: multiply-adds in registers
// (GFLOP/s, of `arithmetic`'s instructions) and copies between maps larger than
// the caches (GB/s, read and written).
struct Ceilings {
  double gflops = 0, gb_per_s = 0;
};
double fma_gflops(Arithmetic arithmetic,
                  ThreadPool& thread_pool);  // some tens of milliseconds
Ceilings measure_ceilings(Arithmetic arithmetic, ThreadPool& thread_pool);

// Adds the time from construction to destruction. Nothing without a
// layer_times.
class PassTimer {
 public:
  PassTimer(LayerTimes* layer_times, PassKind kind, double flops, double bytes);
  ~PassTimer();
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

 private:
  LayerTimes::Entry* entry_;
  double start_ = 0;
};

}  // namespace chexnet
