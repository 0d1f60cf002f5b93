// NVRTC is opened by name: its header comes with packages that a build does
// not need. Its functions have had these types since CUDA 8.
#include "kernel_compiler.hpp"

#include <dlfcn.h>

#include "check_cuda.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/shared_library.hpp"

namespace chexnet {
namespace {

#define CHEXNET_TEXT(x) #x
#define CHEXNET_NUMBER(x) CHEXNET_TEXT(x)
constexpr const char* kLibrary =
    "libnvrtc.so." CHEXNET_NUMBER(CHEXNET_CUDA_MAJOR);
// LibTorch's way to it, which knows where a Python keeps it.
constexpr const char* kLibraryOfTorch = "libcaffe2_nvrtc.so";

class Compiler {
 public:
  using Program = void*;
  static const Compiler& instance() {
    static const Compiler compiler;
    return compiler;
  }
  std::string compile(const std::string& source,
                      const std::vector<std::string>& options,
                      std::string* report) const {
    std::vector<const char*> texts;
    for (const auto& option : options) texts.push_back(option.c_str());
    Program program = nullptr;
    check(create_(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr));
    const int rc =
        compile_(program, static_cast<int>(texts.size()), texts.data());
    std::string code = rc == 0 ? text(program, code_size_, code_)
                               : text(program, log_size_, log_);
    if (report != nullptr) *report = text(program, log_size_, log_);
    destroy_(&program);
    if (rc != 0)
      throw DeviceError("[kernels] {}: {}", error_(rc), code.c_str());
    return code;
  }

 private:
  using Size = int (*)(Program, size_t*);
  using Copy = int (*)(Program, char*);

  Compiler() {
    void* library = open_shared_library(kLibrary);
    if (library == nullptr) library = open_shared_library(kLibraryOfTorch);
    if (library == nullptr) {
      const char* const why = dlerror();
      throw DeviceError(
          "[kernels] {} cannot be opened, nor {}: {}. They come with LibTorch "
          "for GPUs",
          kLibrary, kLibraryOfTorch, why ? why : "no reason");
    }
    find(library, "nvrtcCreateProgram", create_);
    find(library, "nvrtcCompileProgram", compile_);
    find(library, "nvrtcDestroyProgram", destroy_);
    find(library, "nvrtcGetErrorString", error_);
    find(library, "nvrtcGetProgramLogSize", log_size_);
    find(library, "nvrtcGetProgramLog", log_);
    find(library, "nvrtcGetCUBINSize", code_size_);
    find(library, "nvrtcGetCUBIN", code_);
  }
  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr)
      throw DeviceError("[kernels] {} has no {}", kLibrary, name);
  }
  void check(int rc) const {
    if (rc != 0) throw DeviceError("[kernels] {}", error_(rc));
  }
  std::string text(Program program, Size size_of, Copy copy) const {
    size_t size = 0;
    check(size_of(program, &size));
    std::string out(size, '\0');
    check(copy(program, out.data()));
    return out;
  }

  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  const char* (*error_)(int) = nullptr;
  Size log_size_ = nullptr, code_size_ = nullptr;
  Copy log_ = nullptr, code_ = nullptr;
};

}  // namespace

std::string compile_kernels(const std::string& source,
                            const std::string& architecture,
                            const std::vector<std::string>& defines,
                            std::string* report) {
  std::vector<std::string> options = {"--gpu-architecture=" + architecture,
                                      "--std=c++17"};
  for (const auto& name : defines) options.push_back("-D" + name);
  if (report != nullptr) options.emplace_back("--ptxas-options=-v");
  return Compiler::instance().compile(source, options, report);
}

KernelModule::KernelModule(const std::string& machine_code) {
  check_cuda(cudaLibraryLoadData(&library_, machine_code.data(), nullptr,
                                 nullptr, 0, nullptr, nullptr, 0));
}

cudaKernel_t KernelModule::kernel(const char* name) const {
  cudaKernel_t kernel = nullptr;
  check_cuda(cudaLibraryGetKernel(&kernel, library_, name));
  return kernel;
}

}  // namespace chexnet
