#include "chexnet/train/weight_average.hpp"

#include <ATen/ATen.h>

#include "chexnet/train/network_state.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

struct Started {
  Network network;
  explicit Started(uint64_t seed, Precision precision = Precision::kFp64)
      : network(network_spec("densenet121"), 14, {.precision = precision}) {
    network.parameters().initialize(seed);
  }
};

TrainStep::Options with_ema(double decay) {
  TrainConfig config;
  config.ema = decay;
  return {config, equal_weights()};
}

}  // namespace

TEST_CASE("the average follows its definition step by step") {
  Started network_start(1);
  Network& network = network_start.network;
  const Parameters& p = network.parameters();
  const auto comm = solo_communicator();
  constexpr double kDecay = 0.25;
  TrainStep step(network, *comm, with_ema(kDecay));
  step.average().begin();
  at::Tensor values = p.flat_values().clone(),
             running = p.flat_running().clone();
  for (int t = 1; t <= 5; ++t) {
    step.run(parity_images(0), parity_labels(0), 84, 1e-3);
    const double d = std::min(kDecay, (1.0 + t) / (10.0 + t));
    values = d * values + (1 - d) * p.flat_values();
    running = d * running + (1 - d) * p.flat_running();
    CHECK((step.average().values() - values).abs().max().item<double>() <
          1e-14);
    CHECK((step.average().running() - running).abs().max().item<double>() <
          1e-12);
  }
  CHECK_FALSE(at::equal(step.average().values(), p.flat_values()));
}

TEST_CASE("the average of weights that stand still is these, to the last bit") {
  Started network_start(1, Precision::kFp32);
  Parameters& p = network_start.network.parameters();
  const at::Tensor none = at::zeros({});
  WeightAverage average(0.9999, p);
  average.begin();
  for (int t = 1; t <= 40; ++t) {
    constexpr int kLate = 100'000;  // the decay is the configured one by then
    average.update(at::full({}, t < 20 ? t : kLate + t), none);
    REQUIRE(at::equal(average.values(), p.flat_values()));
  }
}

TEST_CASE("a step that changes no weight moves no average") {
  Started network_start(1, Precision::kFp32);
  Network& network = network_start.network;
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, with_ema(0.9));
  step.average().begin();
  step.run(parity_images(0), parity_labels(0), 84, 1e-3);
  const at::Tensor before = step.average().values().clone(),
                   running = step.average().running().clone();
  at::Tensor labels = parity_labels(0);
  labels[0][0] = INFINITY;
  CHECK_FALSE(step.run(parity_images(0), labels, 84, 1e-3)->applied);
  CHECK(at::equal(step.average().values(), before));
  CHECK(at::equal(step.average().running(), running));
}

TEST_CASE("a checkpoint holds the average, and training goes on without it") {
  const ScratchFolder folder;
  Dataset dataset;
  for (int k = 0; k < 14; ++k)
    dataset.manifest.findings.emplace_back(1, char('A' + k));
  const auto& findings = dataset.manifest.findings;
  const auto comm = solo_communicator();
  Started network_start(1, Precision::kFp32);
  Network& network = network_start.network;
  TrainStep step(network, *comm, with_ema(0.9));
  step.average().begin();
  for (int t = 0; t < 2; ++t)
    step.run(parity_images(0), parity_labels(0), 84, 1e-3);
  const at::Tensor weights = network.parameters().flat_values().clone(),
                   average = step.average().values().clone();
  write_network(folder.path(), network.parameters(), step.optimizer(), 2,
                model_metadata(Config(), dataset), &step.average());
  CHECK(at::equal(network.parameters().flat_values(), weights));

  Started scored_start(2, Precision::kFp32);
  Network& scored = scored_start.network;
  read_network(folder / "model.safetensors", Config(), findings,
               scored.parameters());
  CHECK(at::equal(scored.parameters().flat_values(), average));

  Started resumed_start(3, Precision::kFp32);
  Network& resumed = resumed_start.network;
  TrainStep next(resumed, *comm, with_ema(0.9));
  read_network(folder / "model.safetensors", Config(), findings,
               resumed.parameters());
  read_optimizer(folder.path(), resumed.parameters(), next.optimizer(),
                 &next.average());
  CHECK(at::equal(resumed.parameters().flat_values(), weights));
  CHECK(at::equal(next.average().values(), average));
  for (TrainStep* s : {&step, &next})
    s->run(parity_images(0), parity_labels(0), 84, 1e-3);
  CHECK(at::equal(resumed.parameters().flat_values(),
                  network.parameters().flat_values()));
  CHECK(at::equal(next.average().values(), step.average().values()));
  CHECK(at::equal(next.average().running(), step.average().running()));
}

TEST_CASE("label smoothing is training on labels that are less sure") {
  std::vector<at::Tensor> gradients;
  for (const double amount : {0.0, 0.2}) {
    Started network_start(1);
    Network& network = network_start.network;
    const auto comm = solo_communicator();
    TrainConfig config;
    config.label_smoothing = amount;
    TrainStep step(network, *comm, {config, equal_weights()});
    at::Tensor labels = parity_labels(0).to(at::kDouble);
    labels[0][0] = NAN;
    if (amount == 0) labels = labels * 0.8 + 0.1;
    step.run(parity_images(0), labels, 83, 0);
    gradients.push_back(network.parameters().flat_gradients().clone());
  }
  CHECK(gradients[0].abs().max().item<double>() > 1e-4);
  CHECK((gradients[0] - gradients[1]).abs().max().item<double>() < 1e-12);
}
