// The driver is looked up by name at run time, so that building needs no header
// of NVIDIA and starting no driver. Numbers repeat cuda.h. Nothing asked here
// makes a context, which would take memory on the GPU.
#include "chexnet/launch/machine/cuda_driver.hpp"

#include <dlfcn.h>

#include <array>

#include "chexnet/core/shared_library.hpp"
#include "chexnet/core/signals_blocked.hpp"

namespace chexnet {
namespace {

constexpr int kSuccess = 0, kNoDevice = 100, kNotFound = 500;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // attributes

class Calls {
 public:
  explicit Calls(void* library) : library_(library) {}
  // The function's CUresult; kNotFound when the library lacks it.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function =
        reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function == nullptr ? kNotFound : function(arguments...);
  }

 private:
  void* library_;
};

DriverGpu gpu_of(const Calls& driver, int index) {
  DriverGpu gpu;
  int device = 0;
  if (driver.call("cuDeviceGet", &device, index) != kSuccess) return gpu;
  std::array<char, 256> name{};
  const int size = name.size();
  if (driver.call("cuDeviceGetName", name.data(), size, device) == kSuccess)
    gpu.name = name.data();
  driver.call("cuDeviceGetAttribute", &gpu.major, kCapabilityMajor, device);
  driver.call("cuDeviceGetAttribute", &gpu.minor, kCapabilityMinor, device);
  return gpu;
}

}  // namespace

CudaDriver ask_cuda_driver() {
  const SignalsBlocked guard;
  CudaDriver found;
  void* library = open_shared_library("libcuda.so.1");
  found.present = library != nullptr;
  if (!found.present) return found;
  const Calls driver(library);
  driver.call("cuDriverGetVersion", &found.version);
  int count = 0;
  constexpr unsigned kNoFlags = 0;
  int rc = driver.call("cuInit", kNoFlags);
  if (rc == kSuccess) rc = driver.call("cuDeviceGetCount", &count);
  if (rc == kNoDevice) return found;
  if (rc != kSuccess) {
    found.error = rc;
    const char* name = nullptr;
    if (driver.call("cuGetErrorName", rc, &name) == kSuccess && name != nullptr)
      found.error_name = name;
    return found;
  }
  for (int i = 0; i < count; ++i) found.gpus.push_back(gpu_of(driver, i));
  return found;
}

}  // namespace chexnet
