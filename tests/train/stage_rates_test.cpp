#include "chexnet/train/stage_rates.hpp"

#include <ATen/ATen.h>

#include <set>

#include "chexnet/model/engine/network_spec.hpp"
#include "support/catch.hpp"
#include "support/phantom_run.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

struct Measured {
  StageMeasurement of;
  std::set<std::string> shown;
  bool weights_moved = false;
};

Measured measure(const PhantomRun& run, Communicator& comm) {
  const Device device;
  const Dataset dataset = load_dataset(run.config, comm);
  const auto findings = dataset.manifest.finding_count();
  Network network(network_spec("densenet121"), static_cast<int64_t>(findings),
                  {});
  network.parameters().initialize(1);
  const at::Tensor before = network.parameters().flat_values().clone();
  const LossWeights weights{std::vector<double>(findings, 1.0),
                            std::vector<double>(findings, 1.0)};
  const RunContext context{run.config, comm, device, dataset, network, weights};
  Measured out;
  StageRateOptions options;
  options.step.weights = weights;
  options.images = 2;
  options.rounds = 1;
  options.show = [&](const std::string& what) { out.shown.insert(what); };
  out.of = measure_stages(context, options);
  out.weights_moved = !at::equal(network.parameters().flat_values(), before);
  return out;
}

}  // namespace

TEST_CASE("the stages of a run are measured one by one, and its weights stay") {
  PhantomRun run;
  run.config.data.flip = false;
  const auto solo = solo_communicator();
  const Measured measured = measure(run, *solo);
  const StageRates& rates = measured.of.rates;
  CHECK(rates.whole > 0);
  CHECK(rates.read > 0);
  CHECK(rates.load > 0);
  CHECK(rates.load_one == rates.load);  // it has one worker: measured once
  CHECK(rates.load_plain == 0);         // nothing is augmented
  CHECK(rates.same_batch > 0);
  CHECK(rates.no_copy == 0);  // no GPU
  CHECK(rates.alone == 0);    // no other ranks
  CHECK(rates.shared_cores);
  CHECK(measured.of.rates.workers == 1);
  CHECK(measured.shown.contains("the run as configured"));
  CHECK(measured.shown.contains("loading alone"));
  CHECK_FALSE(measured.weights_moved);
}

TEST_CASE("what a run changes in its pictures is measured by leaving it out") {
  PhantomRun run;
  run.config.data.rotate_deg = 10;
  run.config.train.mixup = 0.4;
  const auto solo = solo_communicator();
  const Measured measured = measure(run, *solo);
  CHECK(measured.of.rates.load_plain > 0);
  CHECK(measured.shown.contains("loading without augmentation"));
  CHECK_FALSE(measured.of.rates.over_network);
  CHECK(measured.of.rates.one_host);
}

TEST_CASE("with other ranks the step without their gradients is measured too") {
  const PhantomRun run;
  for (const Measured& rank :
       rank_results(2, [&](auto& comm) { return measure(run, comm); })) {
    CHECK(rank.of.rates.alone > 0);
    CHECK(rank.shown.contains("without gradients of others"));
  }
}

TEST_CASE("images are taken in the order that the run would take them in") {
  PhantomRun run;
  run.config.data.pipeline = PipelineKind::kOld;
  const auto solo = solo_communicator();
  CHECK(error_of<ConfigError>([&] {
          measure(run, *solo);
        }).find("no TFRecord shard, which data.pipeline old") !=
        std::string::npos);
}
