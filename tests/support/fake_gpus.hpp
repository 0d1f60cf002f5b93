#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "support/catch.hpp"

namespace chexnet {

// A host whose driver tells of the GPUs of a YAML file, as long as this lives.
// libnvidia-ml.so.1 is a fake (tests/fakes/nvml.cpp); the loader takes it for
// the driver's, because it is open already under that name.
class FakeGpus {
 public:
  explicit FakeGpus(const std::string& file)
      : library_(dlopen(CHEXNET_FAKE_NVML, RTLD_NOW)) {
    REQUIRE(library_ != nullptr);
    setenv("FAKE_NVML", file.c_str(), 1);
  }
  ~FakeGpus() { unsetenv("FAKE_NVML"); }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;
  // Of a function of NVML since it was opened.
  int calls(const char* function) const {
    return reinterpret_cast<int (*)(const char*)>(
        dlsym(library_, "fake_nvml_calls"))(function);
  }

 private:
  void* library_;
};

}  // namespace chexnet
