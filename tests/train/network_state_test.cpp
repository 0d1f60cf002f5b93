#include "chexnet/train/network_state.hpp"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/model/weights.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

TEST_CASE(
    "a checkpoint that was evaluated with another center crop is refused") {
  const ScratchFolder folder;
  Network network(network_spec("densenet121"), 1, {});
  network.parameters().initialize(1);
  Dataset dataset;
  dataset.manifest.findings = {"A"};
  Config config;
  config.data.resize = 35;
  config.data.crop = 32;
  const auto error_with_begin = [&](int begin) {
    auto description = nlohmann::json::parse(model_metadata(config, dataset));
    description["preprocessing"]["eval_crop_begin"] = begin;
    save_weights(folder / "model.safetensors", network.parameters(), 1,
                 {{"format", "pt"}, {"chexnet", description.dump()}});
    return error_of<CheckpointError>([&] {
      read_network(folder / "model.safetensors", config, {"A"},
                   network.parameters());
    });
  };
  CHECK(error_with_begin(2).empty());
  CHECK(error_with_begin(1).find("\"eval_crop_begin\":1") != std::string::npos);
}

namespace {

const std::vector<std::string> kTwoFindings = {"A", "B"};

Dataset two_findings() {
  Dataset dataset;
  dataset.manifest.findings = kTwoFindings;
  dataset.manifest.sha256 = "table";
  dataset.splits.train = {"train", {}, "sum of the training images"};
  return dataset;
}

// A network with an optimizer that has taken a step.
struct Trained {
  Network network{network_spec("densenet121"), 2, {}};
  Optimizer optimizer{TrainConfig{}, network.parameters(), {}};

  explicit Trained(uint64_t seed, int steps = 0) {
    network.parameters().initialize(seed);
    const Parameters& p = network.parameters();
    for (int s = 0; s < steps; ++s) {
      for (const auto& q : p.list()) {
        at::Tensor gradient = p.part(p.flat_gradients(), q);
        gradient.copy_(
            at::sin(at::arange(gradient.numel(), at::kFloat) * (s + 1))
                .view(q.shape));
      }
      optimizer.set_rate(1e-3);
      optimizer.step();
    }
  }
  void write(const std::filesystem::path& folder) const {
    write_network(folder, network.parameters(), optimizer, 3,
                  model_metadata(Config(), two_findings()));
  }
};

}  // namespace

TEST_CASE("weights and optimizer are the same bits after a checkpoint") {
  const ScratchFolder folder;
  const Trained written(1, 2);
  written.write(folder.path());
  Trained read(9);
  Parameters& p = read.network.parameters();
  read_network(folder / "model.safetensors", Config(), kTwoFindings, p);
  read_optimizer(folder.path(), p, read.optimizer);
  CHECK(parameters_sha256(p) ==
        parameters_sha256(written.network.parameters()));
  CHECK(read.optimizer.steps().all == 2);
  const auto before = written.optimizer.slots(), after = read.optimizer.slots();
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < after.size(); ++i)
    CHECK(at::equal(after[i].second, before[i].second));
  const ModelMetadata metadata =
      read_model_metadata(folder / "model.safetensors");
  CHECK(metadata.findings == kTwoFindings);
  CHECK(metadata.config.find("arch: ") != std::string::npos);
}

TEST_CASE(
    "weights of another network, other findings or other preprocessing are "
    "refused") {
  const ScratchFolder folder;
  Trained trained(1);
  trained.write(folder.path());
  const auto refusal = [&](const Config& config,
                           const std::vector<std::string>& findings) {
    return error_of<CheckpointError>([&] {
      read_network(folder / "model.safetensors", config, findings,
                   trained.network.parameters());
    });
  };
  CHECK(refusal({}, kTwoFindings).empty());
  CHECK(refusal({}, {"A", "C"}).find("its list of findings is") !=
        std::string::npos);
  Config config;
  config.model.arch = Architecture::kResNet50;
  CHECK(refusal(config, kTwoFindings).find("its network is densenet121") !=
        std::string::npos);
  config = {};
  config.data.resize = 300;
  CHECK(refusal(config, kTwoFindings).find("its preprocessing is") !=
        std::string::npos);
}

TEST_CASE("a state of another optimizer is refused by name") {
  const ScratchFolder folder;
  Trained trained(1, 1);
  trained.write(folder.path());
  TrainConfig config;
  config.weight_decay = 0;
  Parameters& p = trained.network.parameters();
  // fp64 parameters have a state of twice the bytes.
  Network wide(network_spec("densenet121"), 2, {.precision = Precision::kFp64});
  Optimizer other(config, wide.parameters(), {});
  const auto text = error_of<CheckpointError>(
      [&] { read_optimizer(folder.path(), wide.parameters(), other); });
  CHECK(text.find("no state 'exp_avg/" + p.list().front().name) !=
        std::string::npos);
}

TEST_CASE(
    "a resume on another training split is refused, a changed table is not") {
  const ScratchFolder folder;
  Trained(1).write(folder.path());
  Dataset dataset = two_findings();
  const auto refusal = [&] {
    return error_of<CheckpointError>(
        [&] { check_same_data(folder.path(), dataset); });
  };
  CHECK(refusal().empty());
  dataset.manifest.sha256 = "another release";
  CHECK(refusal().empty());
  dataset.splits.train.sha256 = "other images";
  CHECK(refusal().find("another training split") != std::string::npos);
}

TEST_CASE("after the broadcast every rank has rank 0's weights and optimizer") {
  const Trained first(1, 3);
  const auto expected = parameters_sha256(first.network.parameters());
  struct Rank {
    std::string weights;
    int64_t steps;
    at::Tensor slot;
  };
  const auto ranks = rank_results(3, [](Communicator& comm) {
    const int rank = comm.rank();
    Trained own(static_cast<uint64_t>(rank + 1), rank == 0 ? 3 : 1);
    broadcast_from_rank_0(comm, own.network.parameters(), &own.optimizer);
    return Rank{parameters_sha256(own.network.parameters()),
                own.optimizer.steps().all,
                own.optimizer.slots().front().second};
  });
  for (const Rank& rank : ranks) {
    CHECK(rank.weights == expected);
    CHECK(rank.steps == 3);
    CHECK(at::equal(rank.slot, first.optimizer.slots().front().second));
  }
}

TEST_CASE("a state that is not finite is named before it is written") {
  Trained trained(1, 1);
  const auto named = [&] {
    return not_finite_state(trained.network.parameters(), trained.optimizer);
  };
  CHECK(named().empty());
  const auto& bias = trained.network.parameters().list().back();
  for (const auto& [slot, flat] : trained.optimizer.slots()) {
    at::Tensor values = trained.network.parameters().part(flat, bias);
    const at::Tensor before = values.clone();
    values[0] = INFINITY;
    CHECK(named() == slot + "/" + bias.name);
    values.copy_(before);
  }
  at::Tensor running = trained.network.parameters().flat_running();
  running[0] = NAN;
  CHECK(named() == "running statistics of the BatchNorms");
  running[0] = 0;
  at::Tensor weight = trained.network.parameters().part(
      trained.network.parameters().flat_values(), bias);
  weight[0] = NAN;
  CHECK(named() == "weights/" + bias.name);
}

TEST_CASE("an optimizer's state that is not finite is refused by its name") {
  const ScratchFolder folder;
  Trained trained(1, 1);
  const auto& bias = trained.network.parameters().list().back();
  const auto [slot, flat] = trained.optimizer.slots().back();
  at::Tensor values = trained.network.parameters().part(flat, bias);
  values[0] = NAN;
  trained.write(folder.path());
  const std::string text = error_of<CheckpointError>([&] {
    read_optimizer(folder.path(), trained.network.parameters(),
                   trained.optimizer);
  });
  CHECK(text.find("optimizer.safetensors: " + slot + "/" + bias.name +
                  " is not finite") != std::string::npos);
}
