// The library is opened before anything asks LibTorch for CUDA: whoever asks
// earlier gets "no" for ever.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/launch/plugin.hpp"
#include "chexnet/train/step.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

const CudaLibrary& opened() {
  static const Plugin plugin(CudaLibrary::file_name());
  return *reinterpret_cast<CudaLibrary* (*)()>(
      plugin.symbol("chexnet_cuda_library"))();
}

using Names = std::set<std::pair<std::string, std::string>>;  // with overload
thread_local Names* recorded = nullptr;

std::unique_ptr<at::ObserverContext> record(const at::RecordFunction& call) {
  if (const auto name = call.operator_name())
    recorded->emplace(name->name, name->overload_name);
  return nullptr;
}

// All operators that `action` calls, and those that these call.
template <class Action>
Names operators_of(Action action) {
  Names names;
  recorded = &names;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(record).scopes({at::RecordScope::FUNCTION}));
  action();
  at::removeCallback(handle);
  return names;
}

struct Case {
  const char* arch;
  Precision precision;
  OptimizerKind optimizer;
  bool sync_batchnorm;
};

// A step with each optimizer, an evaluation and a checkpoint's copy.
Names operators_of_run(const Case& run) {
  return operators_of([&] {
    const auto solo = solo_communicator();
    Network network(
        network_spec(run.arch), kParityFindings,
        {.precision = run.precision,
         .sync_batchnorm = run.sync_batchnorm ? solo.get() : nullptr,
         .own_engine = false});
    network.parameters().initialize(1);
    TrainStep::Options options;
    options.weights = equal_weights();
    options.train.optimizer = run.optimizer;
    options.train.clip_norm = 1e-3;
    options.train.ema = 0.9;
    options.train.accumulate = 2;
    TrainStep step(network, *solo, options);
    step.run(parity_images(0), parity_labels(0), kParityBatch * kParityFindings,
             1e-4);
    network.forward(parity_images(0), Mode::kInference);
  });
}

bool has_cuda_kernel(const std::string& name, const std::string& overload) {
  const auto op = c10::Dispatcher::singleton().findOp({name, overload});
  return op && op->hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA);
}

// What only the CPU's convolution is made of; cuDNN's stands for it on a GPU.
bool is_of_cpu(const std::string& name) {
  return name.find("mkldnn") != std::string::npos ||
         name.find("slow_conv") != std::string::npos;
}

}  // namespace

TEST_CASE("the CUDA library opens on any machine, and LibTorch knows of it") {
  CHECK(opened().device_kind() == "cuda");
  // Of a stub all of this is false; hasCUDA also needs a device.
  CHECK(at::globalContext().hasCuDNN());
  CHECK(at::hasCUDA() == (CudaLibrary::visible_gpus() > 0));
}

TEST_CASE("every operator of a step has a kernel for CUDA") {
  opened();
  Names names;
  for (const Case& run :
       {Case{"densenet121", Precision::kFp16, OptimizerKind::kAdam, false},
        Case{"densenet121", Precision::kBf16, OptimizerKind::kAdamW, true},
        Case{"resnet50", Precision::kFp32, OptimizerKind::kSgd, false}})
    names.merge(operators_of_run(run));
  CHECK(names.size() > 40);
  CHECK(names.contains({"aten::convolution_backward", ""}));
  CHECK(names.contains({"aten::batch_norm_update_stats", ""}));
  for (const char* name :
       {"batch_norm_statistics", "batch_norm_moments", "merge_moments",
        "batch_norm_apply", "batch_norm_sums", "batch_norm_gradient",
        "batch_norm_add_up", "batch_norm_corrected", "batch_norm_max_pool",
        "batch_norm_average_pool", "relu_backward"})
    names.emplace("chexnet::" + std::string(name), "");
  for (const char* name :
       {"cudnn_convolution", "cudnn_batch_norm", "cudnn_batch_norm_backward",
        "_batch_norm_with_update", "batch_norm_backward", "linalg_vector_norm"})
    names.emplace("aten::" + std::string(name), "");

  std::string missing;
  for (const auto& [name, overload] : names)
    if (!is_of_cpu(name) && !has_cuda_kernel(name, overload))
      missing += " " + name + "." + overload;
  CHECK(missing.empty());
  // Of the CPU alone.
  CHECK_FALSE(has_cuda_kernel("aten::mkldnn_linear", ""));
}

TEST_CASE("each part of cuDNN finds what it needs") {
  int parts = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(program_folder() + "/torch")) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("libcudnn")) continue;
    ++parts;
    INFO(name);
    const void* handle = dlopen(file.path().c_str(), RTLD_NOW);
    const char* reason = handle == nullptr ? dlerror() : "";
    INFO(reason);
    CHECK(handle != nullptr);
  }
  CHECK(parts >= 8);
}
