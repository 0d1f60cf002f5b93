#include "tools/commands/step_bench.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <string>

#include "chexnet/model/engine/network_spec.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

StepBenchOptions small_bench() {
  StepBenchOptions options;
  options.batch = 2;
  options.size = kParitySize;
  options.steps = 3;
  options.step.weights = equal_weights();
  return options;
}

bool all_positive(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return v > 0; });
}

}  // namespace

TEST_CASE("a bench of one rank times its steps and nothing of communication") {
  Network network(network_spec("densenet121"), kParityFindings, {});
  network.parameters().initialize(1);
  const at::Tensor before = network.parameters().flat_values().clone();
  const auto solo = solo_communicator();
  const Device device;
  StepBench bench(network, *solo, device, small_bench());
  const StepBenchTimes times = bench.run();
  CHECK(times.step_ms.size() == 3);
  CHECK(all_positive(times.step_ms));
  CHECK((times.silent_ms.empty() && times.allreduce_ms.empty() &&
         times.exposed_ms.empty()));
  CHECK(times.cpu_s_per_step > 0);
  CHECK(times.first_step_s > 0);
  // It did train.
  CHECK_FALSE(at::equal(network.parameters().flat_values(), before));
}

TEST_CASE(
    "a bench of ranks times a step, one without communication, and the "
    "all-reduce alone") {
  const auto ranks = rank_results(2, [](Communicator& comm) {
    Network network(network_spec("densenet121"), kParityFindings, {});
    network.parameters().initialize(1);
    const Device device;
    return StepBench(network, comm, device, small_bench()).run();
  });
  for (const StepBenchTimes& times : ranks) {
    CHECK(times.step_ms.size() == 3);
    CHECK(times.silent_ms.size() == 3);
    CHECK(times.allreduce_ms.size() == 3);
    CHECK(times.exposed_ms.size() == 3 + StepBenchTimes::kWarmUp);
    CHECK(all_positive(times.allreduce_ms));
    CHECK(times.hidden_fraction() >= 0);
    CHECK(times.hidden_fraction() <= 1);
  }
}

TEST_CASE("what of an all-reduce nobody waits for is hidden") {
  StepBenchTimes times;
  times.allreduce_ms = {10, 10, 10};
  times.exposed_ms = {4, 1, 1};
  CHECK(times.hidden_fraction() == Approx(0.9));
  times.exposed_ms = {30};  // waits longer than the all-reduce takes
  CHECK(times.hidden_fraction() == 0);
  times.exposed_ms = {0};
  CHECK(times.hidden_fraction() == 1);
}

TEST_CASE(
    "time by kind of layer is told of our own engine, with the machine's "
    "ceilings") {
  const auto solo = solo_communicator();
  const Device device;
  Network network(network_spec("densenet121"), kParityFindings, {});
  network.parameters().initialize(1);
  StepBench bench(network, *solo, device, small_bench());
  const LayerReport report = bench.layers();
  REQUIRE(report.rows.size() > 3);
  CHECK(report.rows.back().layers == "loss, statistics, optimizer");
  for (size_t i = 0; i + 1 < report.rows.size(); ++i) {
    INFO(report.rows[i].layers);
    CHECK(report.rows[i].ms_per_step > 0);
    CHECK(report.rows[i].gb_per_s >= 0);
  }
  CHECK(report.ceilings.gflops > 0);
  CHECK(report.ceilings.gb_per_s > 0);
}

TEST_CASE("time by operator is told where LibTorch's operators compute") {
  const auto solo = solo_communicator();
  const Device device;
  Network network(network_spec("densenet121"), kParityFindings,
                  {.own_engine = false});
  network.parameters().initialize(1);
  const LayerReport report =
      StepBench(network, *solo, device, small_bench()).layers();
  REQUIRE(report.rows.size() > 5);
  const auto row = [&](const std::string& text) {
    return std::ranges::count(report.rows, text, &LayerRow::layers);
  };
  CHECK(row("aten::convolution x 120") == 1);
  CHECK(row("aten::convolution_backward x 120") == 1);
  CHECK(std::ranges::is_sorted(report.rows, std::greater<>(),
                               &LayerRow::ms_per_step));
  CHECK(report.rows.front().gb_per_s > 0);
}

TEST_CASE("several steps may be timed at once, on images that lie there") {
  const auto solo = solo_communicator();
  const Device device;
  Network network(network_spec("densenet121"), kParityFindings, {});
  network.parameters().initialize(1);
  static int steps;
  steps = 0;
  StepBenchOptions options = small_bench();
  options.at_once = 3;
  options.resident = true;
  Profiler profiler;
  profiler.set_markers(
      [](const char* name) { steps += name == std::string("optimizer"); },
      [] {});
  options.step.profiler = &profiler;
  const StepBenchTimes times = StepBench(network, *solo, device, options).run();
  CHECK(times.step_ms.size() == static_cast<size_t>(options.steps));
  CHECK(steps == 3 * (options.steps + StepBenchTimes::kWarmUp));
}
