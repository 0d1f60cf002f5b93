#include <ATen/ATen.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/model/network.hpp"
#include "model/engine/kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

// ATEN_CPU_CAPABILITY, while it lives. LibTorch has read it by then.
class Limit {
 public:
  explicit Limit(const char* value) {
    at::zeros({1}).add_(1);
    if (const char* set = std::getenv(kName); set != nullptr) before_ = set;
    ::setenv(kName, value, 1);
  }
  ~Limit() {
    if (before_.empty())
      ::unsetenv(kName);
    else
      ::setenv(kName, before_.c_str(), 1);
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  static constexpr const char* kName = "ATEN_CPU_CAPABILITY";
  std::string before_;
};

bool has(const std::string& name) {
  try {
    kernels<float>(name);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Of a training step and of scoring: logits, and all gradients and statistics.
std::vector<at::Tensor> outcome(const char* arch, Precision precision,
                                bool winograd) {
  at::manual_seed(7);
  const at::Tensor images = at::randint(0, 256, {5, 1, 75, 75}, at::kByte);
  Network network(network_spec(arch), 14,
                  {.precision = precision, .winograd = winograd});
  network.parameters().initialize(3);
  const at::Tensor logits = network.forward(images, Mode::kTraining);
  network.backward(logits * 0.01);
  const at::Tensor gradients =
      network.parameters().flat_gradients_and_statistics().clone();
  network.parameters().update_running(at::zeros({}));
  return {logits, gradients, network.forward(images, Mode::kInference)};
}

}  // namespace

#if defined(__x86_64__)

TEST_CASE("AVX2 and AVX-512 give the same bits", "[arithmetic]") {
  if (!has("avx512")) {
    WARN("this processor has no AVX-512: not tested");
    return;
  }
  for (const char* arch : {"densenet121", "resnet50"})
    for (const auto precision :
         {Precision::kFp32, Precision::kFp64, Precision::kBf16})
      for (const bool winograd : {true, false}) {
        std::vector<std::vector<at::Tensor>> found;
        for (const char* set : {"avx2", "avx512"}) {
          const Limit limit(set);
          found.push_back(outcome(arch, precision, winograd));
        }
        INFO(arch << " " << choice_name(precision) << " winograd " << winograd);
        for (size_t i = 0; i < found[0].size(); ++i)
          CHECK(at::equal(found[0][i], found[1][i]));
      }
}

TEST_CASE("the variable that limits LibTorch's operators limits the engine") {
  const auto name = [](const char* value) {
    const Limit limit(value);
    return std::string(kernels<float>().name);
  };
  CHECK(name("default") == "generic");
  for (const char* set : {"avx2", "avx512"})
    if (has(set)) CHECK(name(set) == set);
  for (const char* value : {"AVX2", "avx1024"}) {
    const std::string text = error_of<ConfigError>([&] { name(value); });
    INFO(text);
    CHECK(text.find("no instruction set '" + std::string(value)) !=
          std::string::npos);
    CHECK(text.find("ATEN_CPU_CAPABILITY is default, avx2 or avx512") !=
          std::string::npos);
  }
}

#endif
