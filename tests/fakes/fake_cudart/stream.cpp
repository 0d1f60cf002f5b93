#include "fakes/fake_cudart/stream.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/futex.hpp"
#include "fakes/fake_cudart/watch.hpp"

namespace fake_cuda {
namespace {

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Ends when nobody looks at it any more: a rank that waits for its whole device
// may still do so when another destroys the stream.
using SharedStream = std::shared_ptr<CUstream_st>;

// Never destroyed: threads of streams outlive main().
struct State {
  std::mutex mutex;  // guards the members below
  std::optional<Options> options;
  unsigned made = 0;
  std::vector<SharedStream> streams;   // but the default ones
  std::vector<cudaStream_t> defaults;  // [device]
  std::deque<Fence> fences;
  std::vector<cudaStream_t> ended;
};
State& state() {
  static auto* const state = new State;
  return *state;
}

const Options& options_locked(State& s) {
  if (!s.options)
    s.options = {environment("FAKE_CUDA_DEVICES", Options{}.devices),
                 static_cast<unsigned>(environment("FAKE_CUDA_SEED", 1)),
                 environment("FAKE_CUDA_DELAY_US", Options{}.delay_us),
                 environment("FAKE_CUDA_LAZY", 0) != 0};
  return *s.options;
}

// The error is no more than a number: no thread is ordered by reading it.
std::atomic<int> broken{cudaSuccess};

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int asked_since_launch = 0;

std::vector<SharedStream> streams_of(int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<SharedStream> found;
  for (const SharedStream& stream : s.streams)
    if (stream->device == device) found.push_back(stream);
  return found;
}

cudaStream_t default_stream(int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const Options& options = options_locked(s);
  const auto index = static_cast<size_t>(device);
  if (s.defaults.size() <= index) s.defaults.resize(index + 1);
  if (s.defaults[index] == nullptr)
    s.defaults[index] = new CUstream_st(device, cudaStreamDefault, 0, options,
                                        options.seed + 1000003U * ++s.made);
  return s.defaults[index];
}

// At the process's end: kernels run on LibTorch's CPU code, which must not be
// destroyed below them. Some never end.
void finish_streams() {
  constexpr int kLooks = 10'000;  // of a millisecond
  for (int look = 0; look < kLooks; ++look) {
    bool all_idle = true;
    for (int device = 0; device < device_count(); ++device) {
      std::vector<cudaStream_t> streams = {default_stream(device)};
      const auto made = streams_of(device);
      for (const SharedStream& stream : made) streams.push_back(stream.get());
      for (cudaStream_t stream : streams) {
        stream->want_all();
        all_idle = all_idle && stream->is_idle();
      }
    }
    if (all_idle) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// After the earlier work of the default stream and the blocking ones.
void put(cudaStream_t stream, std::function<void()> work) {
  const bool is_default = default_stream(stream->device) == stream;
  if (is_default) {
    for (const SharedStream& other : streams_of(stream->device))
      if (other->flags != cudaStreamNonBlocking) order(other.get(), stream);
  } else if (stream->flags != cudaStreamNonBlocking) {
    order(default_stream(stream->device), stream);
  }
  stream->push(std::move(work));
}

}  // namespace

void order(cudaStream_t first, cudaStream_t then) {
  Fence* fence = Fence::make();
  fence->put_on(first);
  then->push([fence] { fence->wait(); });
  saw_wait(then, first);
}

void configure(const Options& options) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.options = options;
}

void break_device(cudaError_t error) {
  broken.store(error, std::memory_order_relaxed);
}

cudaError_t device_error() {
  return static_cast<cudaError_t>(broken.load(std::memory_order_relaxed));
}

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

int device_count() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return options_locked(s).devices;
}

int current_device() { return device_of_thread; }

Fence* Fence::make() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return &s.fences.emplace_back();
}

void Fence::signal() {
  at_s_ = std::chrono::duration<double>(
              std::chrono::steady_clock::now().time_since_epoch())
              .count();
  done_.store(1, std::memory_order_release);
  wake_all(done_);
}

void Fence::put_on(cudaStream_t stream) {
  stream_.store(stream, std::memory_order_relaxed);
  pieces_.store(stream->push([this] { signal(); }), std::memory_order_relaxed);
}

// The stream may end meanwhile; it stays in memory.
void Fence::want() const {
  cudaStream_t stream = stream_.load(std::memory_order_relaxed);
  if (stream != nullptr && !is_done())
    stream->want(pieces_.load(std::memory_order_relaxed));
}

void Fence::wait() const {
  while (!is_done()) {
    want();
    wait_while(done_, 0);
  }
}

bool waits_by_asking() {
  constexpr int kLooks = 100;  // an allocator asks for blocks now and then
  return ++asked_since_launch > kLooks;
}

void Gate::open() {
  open_.store(1, std::memory_order_release);
  wake_all(open_);
}

void Gate::wait() const {
  while (open_.load(std::memory_order_acquire) == 0) wait_while(open_, 0);
}

cudaStream_t real_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy)
    return default_stream(current_device());
  return handle;
}

void enqueue_made(cudaStream_t stream, Maker make) {
  if (is_captured(stream)) return keep_work(stream, std::move(make));
  enqueue(stream, make());
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (is_captured(stream))
    return keep_work(stream, [work = std::move(work)] { return work; });
  asked_since_launch = 0;
  stream->take_room();
  put(stream, [stream, work = std::move(work)] {
    stream->give_room();
    if (device_error() == cudaSuccess) work();
  });
}

void enqueue_aside(cudaStream_t stream, std::function<void()> work) {
  if (is_captured(stream))
    return keep_work(stream, [work = std::move(work)] { return work; });
  put(stream, [work = std::move(work)] {
    if (device_error() == cudaSuccess) work();
  });
}

void wait_for(cudaStream_t stream) {
  Fence* fence = Fence::make();
  enqueue(stream, [] {});
  fence->put_on(stream);
  fence->wait();
  saw_host_wait(stream);
}

void wait_for_device(int device) {
  for (const SharedStream& stream : streams_of(device)) wait_for(stream.get());
  wait_for(default_stream(device));
}

}  // namespace fake_cuda

CUstream_st::CUstream_st(int device, unsigned flags, int priority,
                         const fake_cuda::Options& options, unsigned seed)
    : device(device),
      flags(flags),
      priority(priority),
      lazy_(options.lazy),
      delay_us_(options.delay_us),
      last_(new Node),
      present_(last_) {
  std::thread([this, seed] { run(seed); }).detach();
}

uint32_t CUstream_st::push(std::function<void()> work) {
  const bool is_end = !work;
  auto* node = new Node{std::move(work)};
  const std::lock_guard lock(producers_);
  last_->next.store(node, std::memory_order_release);
  last_ = node;
  const uint32_t pieces = pushed_.fetch_add(1, std::memory_order_release) + 1;
  if (is_end) want(pieces);
  fake_cuda::wake_all(pushed_);
  return pieces;
}

void CUstream_st::want(uint32_t pieces) {
  if (!lazy_) return;
  uint32_t wanted = wanted_.load(std::memory_order_relaxed);
  while (static_cast<int32_t>(pieces - wanted) > 0 &&
         !wanted_.compare_exchange_weak(wanted, pieces)) {
  }
  fake_cuda::wake_all(wanted_);
}

void CUstream_st::take_room() {
  constexpr uint32_t kSome = kRoom / 16;
  while (waiting_.load(std::memory_order_relaxed) >= kRoom) {
    want(done_.load(std::memory_order_relaxed) + kSome);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

void CUstream_st::give_room() {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

uint32_t CUstream_st::pending() const {
  const uint32_t done = done_.load(std::memory_order_acquire);
  return pushed_.load(std::memory_order_relaxed) - done;
}

void CUstream_st::run(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pause(0, delay_us_);
  for (uint32_t done = 0;; ++done) {
    while (pushed_.load(std::memory_order_acquire) == done)
      fake_cuda::wait_while(pushed_, done);
    while (lazy_ && wanted_.load(std::memory_order_acquire) == done)
      fake_cuda::wait_while(wanted_, done);
    Node* next = present_->next.load(std::memory_order_acquire);
    delete std::exchange(present_, next);
    if (!next->work) break;
    std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
    next->work();
    next->work = nullptr;
    // Before the end of what LibTorch made until now, at its first kernels.
    if (std::has_single_bit(done + 1)) std::atexit(fake_cuda::finish_streams);
    done_.store(done + 1, std::memory_order_release);
  }
  delete present_;
  // Fences still name it.
  fake_cuda::State& s = fake_cuda::state();
  const std::lock_guard lock(s.mutex);
  s.ended.push_back(this);
}

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t stays = fake_cuda::device_error();
  const cudaError_t last = std::exchange(fake_cuda::last_error, cudaSuccess);
  return stays != cudaSuccess ? stays : last;
}
cudaError_t cudaPeekAtLastError() {
  const cudaError_t stays = fake_cuda::device_error();
  return stays != cudaSuccess ? stays : fake_cuda::last_error;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake_cuda::device_count())
    return fake_cuda::noted(cudaErrorInvalidDevice);
  fake_cuda::device_of_thread = device;
  return fake_cuda::noted(fake_cuda::device_error());
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                         int priority) {
  using namespace fake_cuda;
  if (device_error() != cudaSuccess) return noted(device_error());
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const Options& options = options_locked(s);
  *stream = new CUstream_st(current_device(), flags, priority, options,
                            options.seed + 1000003U * ++s.made);
  // It still does enqueued work when it ends.
  s.streams.emplace_back(*stream, [](cudaStream_t last) { last->push({}); });
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  using namespace fake_cuda;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (std::erase_if(s.streams, [&](const SharedStream& one) {
        return one.get() == stream;
      }) == 0)
    return noted(cudaErrorInvalidResourceHandle);
  return noted(device_error());
}

}  // extern "C"
