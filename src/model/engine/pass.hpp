// What the passes of a network share while it is built and while it runs.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/flat_parameters.hpp"
#include "chexnet/model/engine/kernels.hpp"
#include "chexnet/model/engine/layer_times.hpp"
#include "chexnet/model/engine/memory_plan.hpp"
#include "chexnet/model/engine/micro_batch.hpp"

namespace chexnet {

// A map of a whole batch: pixels [images * height * width], one after the
// other.
struct MapShape {
  int images = 0, height = 0, width = 0;
  int64_t pixels() const {
    return static_cast<int64_t>(images) * height * width;
  }
  template <class S>
  size_t bytes(int channels) const {
    return static_cast<size_t>(pixels()) * static_cast<size_t>(channels) *
           sizeof(S);
  }
  // Behind a 3x3 window of stride 2 and padding 1.
  MapShape halved() const {
    return {images, (height - 1) / 2 + 1, (width - 1) / 2 + 1};
  }
};

// Images of a batch that a pass of inference works on.
struct ImageRange {
  int first = 0, count = 0;
};

// Moments of the plan: forward counts up from 0, backward mirrors it, so the
// backward of what runs at moment m runs at kTurn - m.
inline constexpr int kTurn = 1 << 20;

// Everything a layer needs to describe itself.
template <class S>
struct Build {
  using A = Accumulator<S>;
  const Kernels<S>& kernels;
  const FlatParameters& parameters;
  int threads = 1;
  bool training = false;
  bool winograd = false;
  MemoryPlan plan{};
  int moment = 0;  // of the layer that is being described
  // Largest any pass asks for: memory that lives within one pass.
  size_t workspace = 0;
  size_t workspace_of_thread = 0;  // the same of a pass of one thread alone
  size_t kept = 0;                 // bytes that live as long as the network

  void need_workspace(size_t bytes) { workspace = std::max(workspace, bytes); }
  void need_workspace_of_thread(size_t bytes) {
    workspace_of_thread = std::max(workspace_of_thread,
                                   rounded_up(bytes, MemoryPlan::kAlignment));
    need_workspace(workspace_of_thread * static_cast<size_t>(threads));
  }
  // An offset into the kept memory, for Run::kept_at.
  template <class T>
  size_t keep(int64_t count) {
    const size_t at = kept;
    kept += rounded_up(static_cast<size_t>(count) * sizeof(T),
                       MemoryPlan::kAlignment);
    return at;
  }
  // Packed weights of a forward pass. For training they are made anew in the
  // workspace, as weights change; for inference they live as long as the
  // network.
  size_t keep_packed(int64_t elements) {
    return training ? 0 : keep<A>(elements);
  }
  // In use from this layer's forward until its backward, or only now for
  // inference.
  int add_saved(size_t bytes) {
    return plan.add(bytes, moment, training ? kTurn - moment : moment);
  }
};

// Everything a layer needs to run.
template <class S>
struct Run {
  using A = Accumulator<S>;
  const Kernels<S>& kernels;
  ThreadPool& thread_pool;
  Communicator* sync = nullptr;  // ranks that share batch statistics
  bool training = false;
  bool pack = true;  // weights are not packed yet, or may have changed
  MicroBatch micro_batch{};
  std::byte* arena = nullptr;
  const MemoryPlan* plan = nullptr;
  std::byte* workspace = nullptr;
  size_t workspace_of_thread = 0;
  bool alone = false;  // the calling thread computes all tasks of a pass
  std::byte* kept = nullptr;
  LayerTimes* layer_times = nullptr;  // may be null
  Profiler* profiler = nullptr;       // may be null

  // Of a thread that takes some images through several layers by itself, while
  // other threads take others.
  Run alone_on(int thread) const {
    Run own = *this;
    own.alone = true;
    own.workspace += static_cast<size_t>(thread) * workspace_of_thread;
    return own;
  }
  // Threads of a pass, each with its part of the workspace.
  int threads() const { return alone ? 1 : thread_pool.size(); }
  // work(task, thread), as ThreadPool::run.
  template <class Work>
  void for_each_task(int tasks, const Work& work) const {
    if (!alone) return thread_pool.run(tasks, work);
    for (int task = 0; task < tasks; ++task) work(task, 0);
  }

  template <class T>
  T* buffer(int id) const {
    return reinterpret_cast<T*>(arena + plan->offset(id));
  }
  template <class T>
  T* kept_at(size_t offset) const {
    return reinterpret_cast<T*>(kept + offset);
  }
  // Marks a group of layers on the timeline. `name` is of static life, `number`
  // counts from 1.
  Profiler::Span forward_span(const char* name, size_t number = 0) const {
    return {profiler, Phase::kForward, name,
            static_cast<int32_t>(number) - (number == 0)};
  }
  Profiler::Span backward_span(const char* name, size_t number = 0) const {
    return {profiler, Phase::kBackward, name,
            static_cast<int32_t>(number) - (number == 0)};
  }
};

// Sums over channels of the parts of a pass: [part][2][channels] double, added
// up in order of parts, so they do not depend on threads.
struct PartSums {
  double* values = nullptr;
  int parts = 0, channels = 0;

  static int64_t size(int parts, int channels) {
    return int64_t{2} * parts * channels;
  }
  double* first(int part) const {
    return values + int64_t{2} * part * channels;
  }
  double* second(int part) const { return first(part) + channels; }
  Moments moments(int part) const { return {first(part), second(part)}; }
  void clear(int part) const { std::fill_n(first(part), 2 * channels, 0.0); }
  // Into part 0.
  void combine() const {
    for (int p = 1; p < parts; ++p)
      for (int i = 0; i < 2 * channels; ++i) values[i] += first(p)[i];
  }
};

// A fixed cut of `count` items into `parts`, whatever the number of threads.
struct Cut {
  int64_t count = 0;
  int parts = 1;
  int64_t begin(int part) const { return count * part / parts; }
  int64_t end(int part) const { return begin(part + 1); }
};

// Backward sums weight gradients over pixels: few parts, each with its own
// sums, so that the result does not depend on threads. More threads than parts
// share a part by input channels, which changes no sum; `least_ranges` divides
// them in any case. `most_parts` limits parts where sums leave the caches,
// since each is written and read once more.
struct BackwardCut {
  Cut items;
  int ranges = 1, blocks = 1;  // blocks of 32 input channels

  static constexpr int kParts = 4;
  BackwardCut(int64_t count, int channels, int threads, int most_parts = kParts,
              int least_ranges = 1)
      : items{count,
              static_cast<int>(std::clamp<int64_t>(count / 2, 1, most_parts))},
        blocks(channels / kOutputs) {
    ranges = std::min(blocks, std::max(threads / std::gcd(threads, items.parts),
                                       least_ranges));
  }
  int tasks() const { return items.parts * ranges; }
  int part(int task) const { return task / ranges; }
  int first_channel(int task) const {
    return blocks * (task % ranges) / ranges * kOutputs;
  }
  int last_channel(int task) const {
    return blocks * (task % ranges + 1) / ranges * kOutputs;
  }
  int widest() const { return (blocks + ranges - 1) / ranges * kOutputs; }
};

// The epilogue of one task: its channels, and its part's sums, zeroed.
template <class S>
GradientEpilogue<S> epilogue_of_task(GradientEpilogue<S> epilogue,
                                     const BackwardCut& cut,
                                     const PartSums& sums, int task) {
  epilogue.first = cut.first_channel(task);
  epilogue.last = cut.last_channel(task);
  epilogue.sum = sums.first(cut.part(task));
  epilogue.product = sums.second(cut.part(task));
  std::fill(epilogue.sum + epilogue.first, epilogue.sum + epilogue.last, 0.0);
  std::fill(epilogue.product + epilogue.first, epilogue.product + epilogue.last,
            0.0);
  return epilogue;
}

// Largest number of parts of a forward pass.
inline constexpr int kForwardParts = 24;

}  // namespace chexnet
