#include "tools/commands/infer_bench.hpp"

#include <algorithm>

#include "chexnet/model/engine/network_spec.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

TEST_CASE("a bench of scoring times its passes and knows where time goes") {
  Network network(network_spec("densenet121"), kParityFindings, {});
  network.parameters().initialize(1);
  const Device device;
  InferBench bench(network, device, 2, kParitySize);
  const auto ms = bench.run(3);
  REQUIRE(ms.size() == 3);
  CHECK(std::ranges::all_of(ms, [](double v) { return v > 0; }));
  const LayerReport report = bench.layers();
  REQUIRE(report.rows.size() > 2);
  CHECK(report.rows.front().layers == pass_name(PassKind::kStemForward));
  CHECK(std::ranges::none_of(report.rows, [](const LayerRow& row) {
    return row.layers == pass_name(PassKind::kConv3Backward);
  }));
  CHECK(report.ceilings.gflops > 0);
}
