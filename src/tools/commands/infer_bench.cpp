#include "infer_bench.hpp"

#include <ATen/ATen.h>

#include <cassert>

#include "chexnet/core/clock.hpp"
#include "chexnet/train/random_images.hpp"

namespace chexnet {

InferBench::InferBench(Network& network, const Device& device, int64_t batch,
                       int64_t size)
    : network_(network), device_(device), fixed_weights_(network) {
  Random random(1, Purpose::kTest, 0);
  images_ = random_images(batch, size, random);
}

// As predict does it: pixels go to the device, logits come back.
void InferBench::pass() {
  const at::Tensor images = images_.to(device_.where);
  const at::Tensor logits = network_.forward(images, Mode::kInference);
  logits.to(at::kCPU, at::kDouble);  // waits for a GPU
}

std::vector<double> InferBench::run(int passes) {
  assert(passes > 0);
  std::vector<double> ms;
  for (int i = -kWarmUp; i < passes; ++i) {
    const double start = now_s();
    pass();
    if (i >= 0) ms.push_back(1e3 * (now_s() - start));
  }
  return ms;
}

LayerReport InferBench::layers() {
  constexpr int kPasses = 5;
  return timed_layers(network_, device_, kPasses, "between layers",
                      [this] { pass(); });
}

}  // namespace chexnet
