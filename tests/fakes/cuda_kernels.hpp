// CUDA's language for kernels on the CPU: a block's threads are threads, so the
// source that a GPU gets can be tested, also under the sanitizers. Blocks run
// one after the other, or all at once in an order that a seed decides alone.
// Include it before the source, which
// then is a function that run_kernel() calls. It has only what our kernels use.
//
// What a block stores for others is where CUDA promises it, and nowhere else:
//
//   store_across_blocks -> the thread's own stores
//        __syncthreads      -> those of its block
//        __threadfence      -> the cache of all multiprocessors, which
//                              load_across_blocks reads
//        the kernel's end   -> memory, which plain loads read
//
// So a fence that is missing or late, and a plain load of another block's
// stores, make NaN or what was there before of a sum.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <semaphore>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#define KERNELS_ON_CPU
#define KERNEL inline
#define __device__
#define SHARED(type, name) auto& name = cuda_words::shared<type>(__LINE__)
#define __launch_bounds__(...)
#define UNROLL(count)

namespace cuda_words {

struct Index {
  unsigned x = 0, y = 0;
};
// NOLINT below: names are CUDA's own.
inline thread_local Index threadIdx, blockIdx;  // NOLINT
inline Index blockDim, gridDim;  // written while no thread runs  // NOLINT

// Planted faults, to see that tests find them.
enum class Mistake { kNone, kNoFence, kFenceAfterAtomic, kPlainLoad };
inline Mistake mistake = Mistake::kNone;

using Stores = std::vector<std::pair<float*, float>>;
inline void move_to(Stores& to, Stores& from) {
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

// Threads of which one runs at a time, until it passes its turn on: to any
// other that can run, which `seed` picks. So what one seed shows, it shows
// again, however slow the machine is and however many its cores.
class Turns {
 public:
  Turns(unsigned threads, unsigned seed) : random_(seed + 1) {
    for (unsigned id = 0; id < threads; ++id) {
      turns_.emplace_back(0);
      ready_.push_back(id);
    }
  }
  void begin() { give(); }
  void wait(unsigned id) { turns_[id].acquire(); }
  // The rest is of the thread that has the turn.
  void pass_on(unsigned id) {
    ready_.push_back(id);
    give();
    wait(id);
  }
  // The last of `count` threads wakes those that rest in `resting`.
  void meet(unsigned id, std::vector<unsigned>& resting, size_t count) {
    resting.push_back(id);
    if (resting.size() == count) {
      ready_.insert(ready_.end(), resting.begin(), resting.end());
      resting.clear();
    }
    give();
    wait(id);
  }
  void end() {
    if (!ready_.empty()) give();
  }

 private:
  void give() {
    std::swap(ready_[random_() % ready_.size()], ready_.back());
    const unsigned next = ready_.back();
    ready_.pop_back();
    turns_[next].release();
  }
  std::mt19937 random_;
  std::deque<std::binary_semaphore> turns_;
  std::vector<unsigned> ready_;
};

struct Block {
  struct alignas(16) Piece {
    std::byte bytes[16];
  };
  explicit Block(unsigned threads)
      : count(threads), barrier(static_cast<ptrdiff_t>(threads)) {}
  const unsigned count;
  std::barrier<> barrier;         // of threads that run as they like,
  std::vector<unsigned> resting;  // and of those that take turns
  std::mutex mutex;               // of all below
  std::map<int, std::vector<Piece>> shared;
  Stores stores;
};
// Of the kernel that runs.
struct Cache {
  std::mutex mutex;
  std::unordered_map<const float*, float> words;
  Stores late;  // of blocks that ended without a fence
};
inline Cache* cache = nullptr;
inline thread_local Block* block = nullptr;
inline thread_local Stores own_stores;
// Of blocks that run at once.
inline thread_local Turns* turns = nullptr;
inline thread_local unsigned own_id = 0;  // among the threads of all blocks

// Lets other threads come first, where blocks run at once.
inline void pass_on() {
  if (turns != nullptr) turns->pass_on(own_id);
}
template <class T>
T& shared(int line) {
  const std::lock_guard lock(block->mutex);
  auto& pieces = block->shared[line];
  pieces.resize((sizeof(T) + sizeof(Block::Piece) - 1) / sizeof(Block::Piece));
  return *reinterpret_cast<T*>(pieces.data());
}

inline void __syncthreads() {  // NOLINT
  pass_on();
  {
    const std::lock_guard lock(block->mutex);
    move_to(block->stores, own_stores);
  }
  if (turns != nullptr)
    turns->meet(own_id, block->resting, block->count);
  else
    block->barrier.arrive_and_wait();
}
inline void show_stores() {
  const std::scoped_lock lock(block->mutex, cache->mutex);
  move_to(block->stores, own_stores);
  for (const auto& [to, value] : block->stores)
    cache->words.insert_or_assign(to, value);
  block->stores.clear();
}
inline void __threadfence() {  // NOLINT
  pass_on();
  if (mistake == Mistake::kNone || mistake == Mistake::kPlainLoad)
    show_stores();
}
inline unsigned atomicAdd(unsigned* value, unsigned more) {  // NOLINT
  pass_on();
  const unsigned before = std::atomic_ref(*value).fetch_add(more);
  pass_on();
  if (mistake == Mistake::kFenceAfterAtomic) show_stores();
  return before;
}
inline void store_across_blocks(float* to, float value) {
  own_stores.emplace_back(to, value);
}
template <class Quad>
Quad load_across_blocks(const Quad* from) {
  Quad quad = *from;
  if (mistake == Mistake::kPlainLoad) return quad;
  const std::lock_guard lock(cache->mutex);
  for (float& value : quad.values) {
    const auto found = cache->words.find(from->values + (&value - quad.values));
    value = found == cache->words.end() ? NAN : found->second;
  }
  return quad;
}
inline float __uint_as_float(unsigned bits) {  // NOLINT
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {  // NOLINT
  return std::bit_cast<unsigned>(value);
}
// IEEE 754 binary16, by its definition.
inline float half_to_float(unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  const int whole = exponent == 0 ? fraction : fraction + 1024;
  return sign *
         std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}
// To the nearest, ties to even.
inline unsigned short float_to_half(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  if (std::isnan(value)) return static_cast<unsigned short>(sign | 0x7e00U);
  const float size = std::fabs(value);
  const int exponent = size < 0x1p-14F ? -14 : std::ilogb(size);
  if (exponent > 15) return static_cast<unsigned short>(sign | 0x7c00U);
  // A carry into the next exponent is right as it is.
  const auto steps =
      static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const unsigned bits =
      size < 0x1p-14F ? steps
                      : (static_cast<unsigned>(exponent + 14) << 10) + steps;
  return static_cast<unsigned short>(sign | bits);
}

// kernel() in a thread of a block, then what it left unfenced.
template <class Kernel>
void run_thread(Index of_grid, unsigned id, const Kernel& kernel) {
  threadIdx = {id % blockDim.x, id / blockDim.x};
  blockIdx = of_grid;
  kernel();
  __syncthreads();  // a block's shared memory is its alone
  if (id == 0) {
    const std::scoped_lock lock(block->mutex, cache->mutex);
    move_to(cache->late, block->stores);
  }
  __syncthreads();
}

// Runs `launch`, which starts and ends the threads.
template <class Launch>
void run_grid(Index grid, Index of_threads, const Launch& launch) {
  gridDim = grid;
  blockDim = of_threads;
  Cache of_kernel;
  cache = &of_kernel;
  launch();
  for (const auto& [to, value] : of_kernel.late) *to = value;
  for (const auto& [to, value] : of_kernel.words)
    *const_cast<float*>(to) = value;
}

// kernel() in every thread of a grid, one block after the other; those along y
// in the order `blocks_y`.
template <class Kernel>
void run_kernel(Index grid, Index threads,
                const std::vector<unsigned>& blocks_y, const Kernel& kernel) {
  const unsigned count = threads.x * threads.y;
  Block only(count);
  const auto thread = [&](unsigned id) {
    block = &only;
    for (unsigned x = 0; x < grid.x; ++x)
      for (const unsigned y : blocks_y) run_thread({x, y}, id, kernel);
  };
  run_grid(grid, threads, [&] {
    std::vector<std::jthread> all;
    for (unsigned id = 0; id < count; ++id) all.emplace_back(thread, id);
  });
}

// All blocks at once, in the order of `seed`.
template <class Kernel>
void run_at_once(Index grid, Index threads, unsigned seed,
                 const Kernel& kernel) {
  const unsigned count = threads.x * threads.y;
  Turns of_grid(grid.x * grid.y * count, seed);
  std::deque<Block> blocks;
  const auto thread = [&](Block& own, Index at, unsigned id) {
    block = &own;
    turns = &of_grid;
    own_id = (at.x * grid.y + at.y) * count + id;
    of_grid.wait(own_id);
    run_thread(at, id, kernel);
    of_grid.end();
  };
  run_grid(grid, threads, [&] {
    std::vector<std::jthread> all;
    for (unsigned x = 0; x < grid.x; ++x)
      for (unsigned y = 0; y < grid.y; ++y) {
        Block& own = blocks.emplace_back(count);
        for (unsigned id = 0; id < count; ++id)
          all.emplace_back(thread, std::ref(own), Index{x, y}, id);
      }
    of_grid.begin();
  });
}

}  // namespace cuda_words
