// The arguments of a layer's passes.
#pragma once

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/layer_times.hpp"
#include "chexnet/model/engine/memory_plan.hpp"
#include "chexnet/model/engine/micro_batch.hpp"
#include "kernels/kernels.hpp"

namespace chexnet {

// Images of a batch that a pass of inference works on.
struct ImageRange {
  int first = 0, count = 0;
};

template <class S>
struct Pass {
  using A = Accumulator<S>;
  const Kernels<S>& kernels;
  ThreadPool& thread_pool;
  Communicator* sync = nullptr;  // ranks that share batch statistics
  bool training = false;
  bool feeds_trained = false;  // frozen, and read by a layer that is not
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
  Pass alone_on(int thread) const {
    Pass own = *this;
    own.alone = true;
    own.workspace += static_cast<size_t>(thread) * workspace_of_thread;
    return own;
  }
  // Whether a reader of a pass's output takes batch statistics.
  bool sums() const { return training || feeds_trained; }
  // Of frozen layers.
  Pass in_inference() const {
    Pass frozen = *this;
    frozen.training = false;
    return frozen;
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
  Profiler::Span span(Phase phase, const char* name, size_t number = 0) const {
    return {profiler, phase, name,
            static_cast<int32_t>(number) - (number == 0)};
  }
};

}  // namespace chexnet
