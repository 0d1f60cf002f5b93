#include "chexnet/model/engine/memory_plan.hpp"

#include <algorithm>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("buffers that live at the same time never share memory, others do") {
  Random random(1, Purpose::kTest, 0);
  for (int round = 0; round < 50; ++round) {
    struct Request {
      size_t bytes;
      int first, last;
    };
    std::vector<Request> requests;
    MemoryPlan plan;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random.below(30));
      requests.push_back({1 + random.below(5000), first,
                          first + static_cast<int>(random.below(8))});
      CHECK(plan.add(requests.back().bytes, requests.back().first,
                     requests.back().last) == i);
    }
    plan.assign_offsets();
    size_t sum = 0, most = 0;
    for (int a = 0; a < 40; ++a) {
      const Request& w = requests[static_cast<size_t>(a)];
      CHECK(plan.offset(a) % MemoryPlan::kAlignment == 0);
      CHECK(plan.size(a) >= w.bytes);
      CHECK(plan.offset(a) + plan.size(a) <= plan.bytes());
      sum += plan.size(a);
      size_t alive = 0;
      for (int b = 0; b < 40; ++b) {
        const Request& v = requests[static_cast<size_t>(b)];
        if (v.first <= w.first && w.first <= v.last) alive += plan.size(b);
        if (a == b || v.last < w.first || w.last < v.first) continue;
        const bool apart = plan.offset(a) + plan.size(a) <= plan.offset(b) ||
                           plan.offset(b) + plan.size(b) <= plan.offset(a);
        CHECK(apart);
      }
      most = std::max(most, alive);
    }
    CHECK(plan.bytes() >= most);
    CHECK(plan.bytes() < sum);
  }
}

TEST_CASE(
    "an arena grows, is zeroed and aligned; a allocator without memory only "
    "counts") {
  Arena arena;
  std::byte* first = arena.reserve(1000);
  CHECK(arena.reserve(500) == first);
  CHECK(reinterpret_cast<uintptr_t>(first) % MemoryPlan::kAlignment == 0);
  const size_t larger = arena.bytes() + 1;
  std::byte* second = arena.reserve(larger);
  CHECK(std::all_of(second, second + larger,
                    [](std::byte b) { return b == std::byte{0}; }));
  LinearAllocator counter, allocator(second);
  CHECK(counter.take<double>(3) == nullptr);
  CHECK(counter.take<float>(5) == nullptr);
  CHECK(counter.used() == 64 + 5 * sizeof(float));
  CHECK(reinterpret_cast<std::byte*>(allocator.take<double>(3)) == second);
  CHECK(reinterpret_cast<std::byte*>(allocator.take<float>(5)) == second + 64);
}
