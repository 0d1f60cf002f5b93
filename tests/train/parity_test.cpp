#include <ATen/ATen.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/model/weights.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

namespace {

at::Tensor tensor_of(const NamedArray& array) {
  return at::from_blob(const_cast<std::byte*>(array.data.data()), array.shape,
                       at::kDouble)
      .clone();
}

void twenty_steps_equal_pytorch(const ParityCase& c) {
  INFO(c.name());
  const auto reference = nlohmann::json::parse(
      read_text(source_file("tests/train/parity/") + c.name() + ".json"));
  Network network(network_spec(c.arch), kParityFindings,
                  {.precision = Precision::kFp64});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainConfig config;
  config.optimizer = *find_choice<OptimizerKind>(c.optimizer);
  TrainStep step(network, *comm, {config, equal_weights()});
  for (int s = 0; s < kParitySteps; ++s) {
    const double entries = kParityBatch * kParityFindings;
    const double loss =
        step.run(parity_images(s), parity_labels(s), entries, c.lr)->loss_sum /
        entries;
    REQUIRE(loss ==
            Approx(reference["losses"][static_cast<size_t>(s)].get<double>())
                .epsilon(1e-8));
  }
  const ScratchFolder folder;
  save_weights(folder / "end.safetensors", network.parameters(), kParitySteps,
               {});
  const SafetensorsFile end(folder / "end.safetensors");
  REQUIRE(end.arrays().size() == reference["tensors"].size());
  double worst = 0;
  for (const auto& [name, values] : reference["tensors"].items()) {
    INFO(name);
    REQUIRE(end.find(name) != nullptr);
    if (name.ends_with("num_batches_tracked")) continue;
    const at::Tensor t = tensor_of(*end.find(name)).flatten();
    worst = std::max(worst,
                     std::abs(t[-1].item<double>() - values[0].get<double>()));
    // A sum over n elements may be off by n times the bound.
    CHECK(std::abs(t.sum().item<double>() - values[1].get<double>()) <=
          1e-7 * static_cast<double>(t.numel()));
  }
  CHECK(worst <= 1e-7);
}

}  // namespace

// Run by scripts/reference/make_parity_dump.py, which trains on these files
// with PyTorch.
TEST_CASE("write the start of the parity runs", "[.dump]") {
  const char* folder = std::getenv("CHEXNET_DUMP");
  REQUIRE(folder != nullptr);
  const std::filesystem::path out(folder);
  for (const char* arch : {"densenet121", "resnet50"}) {
    Network network(network_spec(arch), kParityFindings,
                    {.precision = Precision::kFp64});
    network.parameters().initialize(1);
    save_weights(out / (std::string(arch) + ".safetensors"),
                 network.parameters(), 0, {});
  }
  std::vector<at::Tensor> kept;
  std::vector<NamedArray> arrays;
  for (int step = 0; step < kParitySteps; ++step) {
    for (const auto& [name, tensor] : {std::pair{"images", parity_images(step)},
                                       {"labels", parity_labels(step)}}) {
      kept.push_back(tensor);
      arrays.push_back(
          {std::string(name) + "/" + std::to_string(step),
           tensor.scalar_type() == at::kByte ? ElementType::kU8
                                             : ElementType::kF32,
           tensor.sizes().vec(),
           std::span(static_cast<const std::byte*>(tensor.const_data_ptr()),
                     tensor.nbytes())});
    }
  }
  write_safetensors(out / "batches.safetensors", arrays, {});
  nlohmann::json cases;
  for (const auto& c : parity_cases())
    cases.push_back(
        {{"arch", c.arch}, {"optimizer", c.optimizer}, {"lr", c.lr}});
  write_atomically(out / "cases.json", cases.dump());
}

// Each network once, each optimizer once; the rest of the square is the second
// tier's.
TEST_CASE(
    "twenty fp64 steps equal PyTorch's: losses to 1e-8, parameters to 1e-7") {
  twenty_steps_equal_pytorch(parity_cases()[0]);
  twenty_steps_equal_pytorch(parity_cases()[3]);
}
TEST_CASE(
    "twenty fp64 steps equal PyTorch's with each network's other optimizer",
    "[second]") {
  twenty_steps_equal_pytorch(parity_cases()[1]);
  twenty_steps_equal_pytorch(parity_cases()[2]);
}
