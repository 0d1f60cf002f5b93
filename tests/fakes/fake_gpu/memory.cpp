#include "fakes/fake_gpu/memory.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace fake_gpu {
namespace {

constexpr size_t kDevices = 16;

struct Region {
  std::atomic<std::byte*> closed{nullptr};  // for tensors
  std::byte* open = nullptr;                // for kernels
};
std::array<Region, kDevices> regions;
std::mutex mapping;  // guards the making of a region

std::byte* map(int file, int rights) {
  void* at = mmap(nullptr, memory_bytes(), rights, MAP_SHARED | MAP_NORESERVE,
                  file, 0);
  if (at == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(at);
}

const Region* region_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (const Region& region : regions) {
    const std::byte* begin = region.closed.load(std::memory_order_acquire);
    if (begin != nullptr && at >= begin && at < begin + memory_bytes())
      return &region;
  }
  return nullptr;
}

struct sigaction before;

// Async-signal-safe but for backtrace(), which has been called once before.
void on_fault(int number, siginfo_t* info, void* context) {
  if (region_of(info->si_addr) == nullptr) {
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
      return before.sa_sigaction(number, info, context);
    sigaction(number, &before, nullptr);  // the access is repeated and ends it
    return;
  }
  std::array<char, 160> text{};
  const int length = std::snprintf(
      text.data(), text.size(),
      "[fake gpu] the host touched device memory at %p outside a kernel:\n",
      info->si_addr);
  (void)!write(STDERR_FILENO, text.data(), static_cast<size_t>(length));
  std::array<void*, 24> frames{};
  backtrace_symbols_fd(
      frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())),
      STDERR_FILENO);
  _exit(kHostAccess);
}

}  // namespace

size_t memory_bytes() {
  static const size_t bytes = [] {
    const char* text = std::getenv("FAKE_GPU_MEMORY_MB");
    return static_cast<size_t>(text != nullptr ? std::atoi(text) : 2048) << 20;
  }();
  return bytes;
}

std::byte* device_memory(int device) {
  Region& region = regions.at(static_cast<size_t>(device));
  const std::lock_guard lock(mapping);
  if (std::byte* known = region.closed.load()) return known;
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(memory_bytes())) != 0)
    std::abort();
  region.open = map(file, PROT_READ | PROT_WRITE);
  region.closed.store(map(file, PROT_NONE), std::memory_order_release);
  close(file);
  return region.closed;
}

bool is_device_address(const void* address) {
  return region_of(address) != nullptr;
}

void* kernel_view(const void* address) {
  const Region* region = region_of(address);
  if (region == nullptr) return const_cast<void*>(address);
  return region->open + (static_cast<const std::byte*>(address) -
                         region->closed.load(std::memory_order_relaxed));
}

void report_host_accesses() {
  std::array<void*, 1> frame{};
  backtrace(frame.data(), 1);  // loads its library
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace fake_gpu
