#include <ATen/ATen.h>

#include "chexnet/core/error.hpp"
#include "chexnet/model/formats/onnx_network.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/model/weights.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/onnx_interpreter.hpp"

using namespace chexnet;

namespace {

constexpr int64_t kFindings = 5, kSize = 64;

// Random weights, statistics and affine parameters, so that no BatchNorm does
// nothing.
void draw(Network& network, uint64_t seed = 3) {
  at::manual_seed(5);
  Parameters& p = network.parameters();
  p.initialize(seed);
  for (const auto& entry : p.list()) {
    at::Tensor values = p.part(p.flat_values(), entry);
    if (entry.shape.size() == 1) values.add_(at::rand_like(values), 0.2);
  }
  for (size_t i = 0; i < p.statistics().size(); ++i) {
    p.running_mean(static_cast<int>(i)).normal_(0, 0.1);
    p.running_var(static_cast<int>(i)).uniform_(0.5, 1.5);
  }
  // The file's numbers are fp32.
  for (const at::Tensor& flat : {p.flat_values(), p.flat_running()})
    flat.copy_(flat.to(at::kFloat));
  p.refresh_compute_copies();
}

FloatTensors weights_of(const Network& network) {
  const ScratchFolder folder;
  const auto path = folder / "model.safetensors";
  save_weights(path, network.parameters(), 1, {});
  return float_tensors(SafetensorsFile(path), "model");
}

OnnxOptions options_of(const Network& network) {
  return {.size = kSize,
          .mean = network.options().mean,
          .std = network.options().std,
          .metadata = {}};
}

}  // namespace

TEST_CASE("an ONNX file computes what the network does") {
  const auto arch = GENERATE("densenet121", "resnet50");
  CAPTURE(arch);
  // In fp64, so that rounding hides nothing.
  Network network(network_spec(arch), kFindings,
                  {.precision = Precision::kFp64});
  draw(network);
  const FloatTensors weights = weights_of(network);
  const at::Tensor images =
      at::randint(0, 256, {2, 1, kSize, kSize}, at::kByte);
  const at::Tensor logits =
      network.forward(images, Mode::kInference).to(at::kDouble);
  const auto differs = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  // The pictures matter, and mean and deviation are fp32 in the file.
  const auto size = logits.abs().max().item<double>();
  REQUIRE(differs(logits[0], logits[1]) > 1e-3 * size);
  const double tolerance = 1e-6 * size;

  OnnxOptions options = options_of(network);
  const OnnxInterpreter gray(
      onnx_network(network_spec(arch), {weights}, options));
  CHECK(gray.input() == "image");
  CHECK(gray.outputs() == std::vector<std::string>{"probabilities"});
  const auto values = gray.run(images);
  CHECK(differs(values.at("logits"), logits) < tolerance);
  CHECK(differs(values.at("probabilities"), logits.sigmoid()) < tolerance);

  options.input = ModelInput::kFloat;
  options.output = ModelOutput::kLogits;
  const OnnxInterpreter scaled(
      onnx_network(network_spec(arch), {weights}, options));
  CHECK(scaled.outputs() == std::vector<std::string>{"logits"});
  const auto channel = [&](const std::vector<double>& v) {
    return at::tensor(v, at::kDouble).view({1, 3, 1, 1});
  };
  const at::Tensor input =
      (images.to(at::kDouble) / 255 - channel(options.mean)) /
      channel(options.std);
  CHECK(differs(scaled.run(input).at("logits"), logits) < tolerance);
}

TEST_CASE("an ensemble's ONNX file gives the mean of its members' logits") {
  std::vector<FloatTensors> members;
  std::vector<at::Tensor> logits;
  const at::Tensor images =
      at::randint(0, 256, {2, 1, kSize, kSize}, at::kByte);
  OnnxOptions options;
  for (const uint64_t seed : {3, 4}) {
    Network network(network_spec("densenet121"), kFindings,
                    {.precision = Precision::kFp64});
    draw(network, seed);
    members.push_back(weights_of(network));
    logits.push_back(
        network.forward(images, Mode::kInference).to(at::kDouble).clone());
    options = options_of(network);
  }
  const OnnxInterpreter both(
      onnx_network(network_spec("densenet121"), members, options));
  CHECK(both.outputs() == std::vector<std::string>{"probabilities"});
  const at::Tensor mean = (logits[0] + logits[1]) / 2;
  const auto values = both.run(images);
  const auto size = mean.abs().max().item<double>();
  REQUIRE((logits[0] - mean).abs().max().item<double>() > 1e-2 * size);
  CHECK((values.at("logits") - mean).abs().max().item<double>() < 1e-6 * size);
  CHECK(
      (values.at("probabilities") - mean.sigmoid()).abs().max().item<double>() <
      1e-6);
}

TEST_CASE("a network's ONNX file needs all of its weights") {
  Network network(network_spec("resnet50"), kFindings, {});
  FloatTensors weights = weights_of(network);
  const OnnxOptions options = options_of(network);
  CHECK(error_of<CheckpointError>([&] {
          onnx_network(network_spec("densenet121"), {weights}, options);
        }).find("features.conv0.weight is not in the model file") !=
        std::string::npos);
  weights.erase("layer3.2.bn2.running_var");
  CHECK(error_of<CheckpointError>([&] {
          onnx_network(network_spec("resnet50"), {weights}, options);
        }).find("layer3.2.bn2.running_var is not in the model file") !=
        std::string::npos);
}
