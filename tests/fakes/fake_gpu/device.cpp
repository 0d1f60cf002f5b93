#include "fakes/fake_gpu/device.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/stream.hpp"
#include "fakes/fake_cudart/watch.hpp"
#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

constexpr auto kKind = c10::DeviceType::PrivateUse1;

// The first thing that a kernel threw.
struct Failure {
  std::mutex mutex;  // guards text
  std::optional<std::string> text;
};
Failure& failure() {
  static auto* const failure = new Failure;
  return *failure;
}
void throw_if_failed() {
  const std::lock_guard lock(failure().mutex);
  TORCH_CHECK(!failure().text, "fake GPU: a kernel failed: ", *failure().text);
}

std::atomic<int64_t> launches{0};

int present_device() {
  int device = 0;
  check(cudaGetDevice(&device));
  return device;
}

// Streams that this thread made current, by device.
thread_local std::map<int, cudaStream_t> current;

// The pool of a device hands out its streams in turns.
constexpr size_t kPoolSize = 4;
struct Pool {
  std::mutex mutex;  // guards the members below
  std::map<std::pair<int, int>, std::vector<cudaStream_t>> streams;
  size_t next = 0;
};
Pool& pool() {
  static auto* const pool = new Pool;
  return *pool;
}

cudaStream_t from_pool(int device, int priority) {
  const std::lock_guard lock(pool().mutex);
  auto& streams = pool().streams[{device, priority}];
  if (streams.size() < kPoolSize) {
    const int before = present_device();
    check(cudaSetDevice(device));
    cudaStream_t stream = nullptr;
    check(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    check(cudaSetDevice(before));
    streams.push_back(stream);
    return stream;
  }
  return streams[pool().next++ % kPoolSize];
}

// Planted faults: FAKE_GPU_HANG_AT=n, the n-th launch never ends, counting
// those alone whose name contains FAKE_GPU_HANG_IN;
// FAKE_GPU_READ_AT=n, at the n-th launch the host reads what the kernel is
// given. Of every device, or of FAKE_GPU_FAULTY alone.
int64_t planted(const char* name) {
  const char* number = std::getenv(name);
  const char* device = std::getenv("FAKE_GPU_FAULTY");
  const bool here = device == nullptr || std::atoi(device) == present_device();
  return number != nullptr && here ? std::atoll(number) : -1;
}

bool hangs(const std::string& what, int64_t number) {
  static std::atomic<int64_t> of_that_name{0};
  const int64_t at = planted("FAKE_GPU_HANG_AT");
  if (at < 0) return false;
  const char* name = std::getenv("FAKE_GPU_HANG_IN");
  // Or after: the n-th may be no kernel.
  if (name == nullptr) return number >= at;
  return what.find(name) != std::string::npos && of_that_name++ == at;
}

// A kernel is computed as LibTorch computes on a CPU with one thread.
void prepare_thread() {
  thread_local bool ready = false;
  if (ready) return;
  at::set_num_threads(1);
  ready = true;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kKind; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override {
    return {kKind, static_cast<c10::DeviceIndex>(present_device())};
  }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) check(cudaSetDevice(device.index()));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) cudaSetDevice(device.index());
  }
  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index =
        device.has_index() ? device.index() : getDevice().index();
    const auto found = current.find(index);
    return stream_of(index, found == current.end() ? nullptr : found->second);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(device.index(), nullptr);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device,
                                      bool is_high_priority) const override {
    return getNewStream(device, is_high_priority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const c10::DeviceIndex index =
        device.has_index() ? device.index() : getDevice().index();
    return stream_of(index, from_pool(index, priority));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current[stream.device_index()] = handle_of(stream);
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return handle_of(stream);
  }

  void destroyEvent(void* event,
                    const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    auto handle = static_cast<cudaEvent_t>(*event);
    if (handle == nullptr)
      check(cudaEventCreateWithFlags(&handle,
                                     flag == c10::EventFlag::BACKEND_DEFAULT
                                         ? cudaEventDefault
                                         : cudaEventDisableTiming));
    check(cudaEventRecord(handle, handle_of(stream)));
    *event = handle;
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    check(cudaStreamWaitEvent(handle_of(stream),
                              static_cast<cudaEvent_t>(event), 0));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr ||
           cudaEventQuery(static_cast<cudaEvent_t>(event)) == cudaSuccess;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
    throw_if_failed();
  }
  bool queryStream(const c10::Stream& stream) const override {
    return cudaStreamQuery(handle_of(stream)) == cudaSuccess;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(cudaStreamSynchronize(handle_of(stream)));
    throw_if_failed();
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    check(cudaDeviceSynchronize());
    throw_if_failed();
  }
  double elapsedTime(void* from, void* to,
                     const c10::DeviceIndex) const override {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(from),
                               static_cast<cudaEvent_t>(to)));
    return ms;
  }
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& stream) const override {
    used_on(data, stream);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    int count = 0;
    cudaGetDeviceCount(&count);
    return static_cast<c10::DeviceIndex>(count);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return Guard().deviceCount();
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(present_device());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    check(cudaSetDevice(device));
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  c10::Device getDeviceFromPtr(void*) const override {
    return Guard().getDevice();
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator generator =
        at::make_generator<at::CPUGeneratorImpl>();
    return generator;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

void compute(const std::string& what, const std::function<void()>& kernel) {
  prepare_thread();
  try {
    kernel();
  } catch (const std::exception& e) {
    const std::lock_guard lock(failure().mutex);
    if (!failure().text) failure().text = what + ": " + e.what();
  }
}

cudaStream_t stream_for(const std::string& what,
                        const std::vector<RaceDetector::Range>& ranges) {
  throw_if_failed();
  cudaStream_t stream = fake_cuda::real_stream(handle_of(current_stream()));
  if (!fake_cuda::is_captured(stream)) ++launches;
  fake_cuda::uses(stream, what, ranges);
  return stream;
}

// Also those of a graph's launches.
std::atomic<int64_t> kernels{0};

}  // namespace

void check(cudaError_t error) {
  TORCH_CHECK(error == cudaSuccess, "fake GPU: ", cudaGetErrorString(error));
}

c10::Stream stream_of(c10::DeviceIndex device, cudaStream_t handle) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kKind, device),
                     std::bit_cast<c10::StreamId>(handle));
}

cudaStream_t handle_of(const c10::Stream& stream) {
  return std::bit_cast<cudaStream_t>(stream.id());
}

c10::Stream current_stream() {
  return Guard().getStream(c10::Device(kKind, -1));
}

void launch(const std::string& what,
            const std::vector<RaceDetector::Range>& ranges,
            std::function<void()> kernel) {
  const int64_t read_at = planted("FAKE_GPU_READ_AT");
  if (read_at >= 0 && kernels >= read_at && !ranges.empty())
    (void)*static_cast<const volatile char*>(ranges.front().begin);
  const auto make = [what, kernel = std::move(kernel)] {
    const bool never_ends = hangs(what, kernels++);
    return [what, kernel, never_ends] {
      if (never_ends) std::this_thread::sleep_for(std::chrono::hours(1));
      compute(what, kernel);
    };
  };
  fake_cuda::enqueue_made(stream_for(what, ranges), make);
  check(fake_cuda::device_error());
}

void launch_aside(const std::string& what,
                  const std::vector<RaceDetector::Range>& ranges,
                  std::function<void()> kernel) {
  ++kernels;
  fake_cuda::enqueue_aside(
      stream_for(what, ranges),
      [what, kernel = std::move(kernel)] { compute(what, kernel); });
  check(fake_cuda::device_error());
}

void launch_graph(cudaGraphExec_t graph) {
  throw_if_failed();
  ++launches;
  check(cudaGraphLaunch(graph, handle_of(current_stream())));
}

void wait_for_current_stream() {
  check(cudaStreamSynchronize(handle_of(current_stream())));
  throw_if_failed();
}

void found(const std::string& what) {
  std::fprintf(stderr, "[fake gpu] %s\n", what.c_str());
  _exit(kFound);
}

Counters counters() {
  const fake_cuda::HostWaits waits = fake_cuda::host_waits();
  return {launches, waits.for_all, waits.for_some};
}

int64_t pending_work() {
  return fake_cuda::real_stream(handle_of(current_stream()))->pending();
}

void register_device() {
  static const bool done = [] {
    report_host_accesses();
    fake_cuda::set_kernel_view(kernel_view);
    fake_cuda::detect_races(found);
    c10::register_privateuse1_backend("fake");
    c10::impl::registerDeviceGuard(kKind, new Guard);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::SetAllocator(kKind, device_allocator());
    return true;
  }();
  (void)done;
}

}  // namespace fake_gpu
