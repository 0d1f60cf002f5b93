#include "fakes/fake_cudart/watch.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "fakes/fake_cudart/capture.hpp"

namespace fake_cuda {
namespace {

struct Watch {
  RaceDetector detector;
  std::function<void(const std::string&)> found;
};
// Set once, never freed: threads of streams outlive main().
std::atomic<Watch*> watch{nullptr};
std::atomic<void* (*)(const void*)> view{nullptr};

// Relaxed: counting orders no threads.
std::atomic<int64_t> launches{0}, waits_for_all{0}, waits_for_some{0};
void add_one(std::atomic<int64_t>& count) {
  count.fetch_add(1, std::memory_order_relaxed);
}

template <class Handle>
uintptr_t id_of(Handle* handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

template <class Note>
void note(const Note& note) {
  if (Watch* present = watch.load(std::memory_order_acquire))
    note(present->detector);
}

// The number in an environment variable; one that is never reached without it.
int64_t number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atol(text)
                         : std::numeric_limits<int64_t>::max();
}

}  // namespace

void detect_races(std::function<void(const std::string&)> found) {
  auto* fresh = new Watch;
  fresh->found = std::move(found);
  watch.store(fresh, std::memory_order_release);
}

void uses(cudaStream_t stream, const std::string& what,
          const std::vector<RaceDetector::Range>& ranges) {
  if (is_captured(stream)) return keep_uses({what, ranges});
  add_one(launches);
  Watch* present = watch.load(std::memory_order_acquire);
  if (present == nullptr) return;
  const auto race = present->detector.work(id_of(stream), what, ranges);
  if (race) present->found(*race);
}

void saw_record(const void* event, cudaStream_t stream) {
  note([&](RaceDetector& d) { d.recorded(id_of(event), id_of(stream)); });
}
void saw_wait(cudaStream_t stream, const void* event) {
  note([&](RaceDetector& d) { d.stream_waits(id_of(stream), id_of(event)); });
}
void saw_wait(cudaStream_t stream, cudaStream_t other) {
  note([&](RaceDetector& d) {
    d.stream_waits_for_stream(id_of(stream), id_of(other));
  });
}
void saw_host_wait(cudaEvent_t event) {
  note([&](RaceDetector& d) { d.host_waited_for_event(id_of(event)); });
}
void saw_host_wait(cudaStream_t stream) {
  note([&](RaceDetector& d) { d.host_waited_for_stream(id_of(stream)); });
}

HostWaits host_waits() {
  return {waits_for_all.load(std::memory_order_relaxed),
          waits_for_some.load(std::memory_order_relaxed)};
}
int64_t launched() { return launches.load(std::memory_order_relaxed); }
void count_wait_for_all() { add_one(waits_for_all); }
void count_wait_for_event(int64_t launched_before) {
  add_one(launched_before == launched() ? waits_for_all : waits_for_some);
}

void set_kernel_view(void* (*translate)(const void* address)) {
  view.store(translate, std::memory_order_release);
}

void* kernel_view(const void* address) {
  const auto translate = view.load(std::memory_order_acquire);
  return translate != nullptr ? translate(address) : const_cast<void*>(address);
}

bool forgets_stream_wait() {
  static const int64_t forgotten = number_in("FAKE_CUDA_FORGET_STREAM_WAIT");
  static std::atomic<int64_t> seen{0};
  return seen++ == forgotten;
}

bool forgets_host_wait() {
  static const int64_t forgotten = number_in("FAKE_CUDA_FORGET_HOST_WAIT");
  static std::atomic<int64_t> seen{0};
  return seen++ == forgotten;
}

}  // namespace fake_cuda
