// A ceiling is the best of a few rounds: other work on the machine only ever
// makes a round slower. Work per round is fixed, and bytes of a copy are
// counted twice, as read and as written.
#include "chexnet/model/engine/layer_times.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/model/engine/memory_plan.hpp"
#include "kernels/kernels.hpp"

namespace chexnet {

const char* pass_name(PassKind kind) {
  switch (kind) {
    case PassKind::kStemForward:
      return "stem forward";
    case PassKind::kPointwiseForward:
      return "1x1 forward";
    case PassKind::kConv3Forward:
      return "3x3 forward";
    case PassKind::kClassifierHead:
      return "pool and classifier";
    case PassKind::kConv3Backward:
      return "3x3 backward";
    case PassKind::kPointwiseBackward:
      return "1x1 backward";
    case PassKind::kStemBackward:
      return "stem backward";
    case PassKind::kResidual:
      return "residual additions";
  }
  return "";
}

namespace {

template <class S>
double gflops_of(ThreadPool& thread_pool) {
  const Kernels<S>& k = kernels<S>();
  double best = 0;
  constexpr int kRounds = 2'000'000;
  // Of ten: a thread that wakes late leaves its task to another one.
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::vector<double> flops(static_cast<size_t>(thread_pool.size()));
    const double start = now_s();
    thread_pool.run(thread_pool.size(), [&](int task, int) {
      flops[static_cast<size_t>(task)] = k.fma_loop(kRounds);
    });
    const double seconds = now_s() - start;
    best =
        std::max(best, 1e-9 * std::accumulate(flops.begin(), flops.end(), 0.0) /
                           seconds);
  }
  return best;
}

}  // namespace

double fma_gflops(Arithmetic arithmetic, ThreadPool& thread_pool) {
  switch (arithmetic) {
    case Arithmetic::kFp64:
      return gflops_of<double>(thread_pool);
    case Arithmetic::kBf16:
      return gflops_of<Bf16>(thread_pool);
    case Arithmetic::kFp32:
      break;
  }
  return gflops_of<float>(thread_pool);
}

Ceilings measure_ceilings(Arithmetic arithmetic, ThreadPool& thread_pool) {
  Ceilings ceilings;
  ceilings.gflops = fma_gflops(arithmetic, thread_pool);
  constexpr size_t kBytes = size_t{64} << 20;
  const auto threads = static_cast<size_t>(thread_pool.size());
  Arena memory;
  std::byte* from = memory.reserve(2 * kBytes * threads);
  std::byte* to = from + kBytes * threads;
  for (int repeat = 0; repeat < 4;
       ++repeat) {  // the first one touches the pages
    const double start = now_s();
    thread_pool.run(thread_pool.size(), [&](int task, int) {
      const size_t at = kBytes * static_cast<size_t>(task);
      std::memcpy(to + at, from + at, kBytes);
    });
    const double bytes = 2.0 * static_cast<double>(kBytes * threads);
    ceilings.gb_per_s =
        std::max(ceilings.gb_per_s, 1e-9 * bytes / (now_s() - start));
  }
  return ceilings;
}

void LayerTimes::add_mean_of(std::span<const LayerTimes> threads) {
  const auto busy = static_cast<double>(
      std::ranges::count_if(threads, [](const LayerTimes& thread) {
        return std::ranges::any_of(thread.entries, [](const Entry& entry) {
          return entry.passes > 0;
        });
      }));
  for (const LayerTimes& thread : threads)
    for (size_t kind = 0; kind < entries.size(); ++kind) {
      const Entry& from = thread.entries[kind];
      if (from.passes == 0) continue;
      Entry& to = entries[kind];
      to.seconds += from.seconds / busy;
      to.flops += from.flops;
      to.bytes += from.bytes;
      to.passes += from.passes;
    }
}

PassTimer::PassTimer(LayerTimes* layer_times, PassKind kind, double flops,
                     double bytes)
    : entry_(layer_times == nullptr ? nullptr : &layer_times->of(kind)) {
  if (entry_ == nullptr) return;
  entry_->flops += flops;
  entry_->bytes += bytes;
  ++entry_->passes;
  start_ = now_s();
}

PassTimer::~PassTimer() {
  if (entry_ != nullptr) entry_->seconds += now_s() - start_;
}

}  // namespace chexnet
