// The measurements are those of `bench step` and `bench allreduce`:
// DenseNet-121, 16 images of 224 px for each rank, and the sum of its
// gradients.
#include "acceptance_rows.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "allreduce_bench.hpp"
#include "bench_network.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/launch/machine/host_checks.hpp"
#include "chexnet/launch/machine/nvml.hpp"
#include "step_bench.hpp"

namespace chexnet {
namespace {

double images_per_s(Communicator& comm, const Device& device) {
  const NetworkBenchOptions options;
  const auto network = bench_network(options, Config{}, device, comm);
  const LossWeights weights{std::vector<double>(kBenchFindings, 1.0),
                            std::vector<double>(kBenchFindings, 1.0)};
  StepBench bench(
      *network, comm, device,
      {.batch = options.batch,
       .size = options.size,
       .step = {TrainConfig{}, weights, 4, GradientCompression::kNone}});
  const double median_ms = quantile(bench.run().step_ms, 0.5);
  return 1e3 * static_cast<double>(options.batch * comm.size()) / median_ms;
}

// One rank of each host looks at it; the worst of all counts.
void look_at_hosts(NodeFigures& found, const NodeThresholds& wanted,
                   const std::string& folder, Communicator& comm) {
  Json mine;
  if (comm.world().local_rank == 0) {
    const auto nvml = Nvml::open();
    mine = {{"gpus", CudaLibrary::visible_gpus()},
            {"driver", nvml ? nvml->driver_version() : ""}};
    if (wanted.read_mb_per_s) {
      const auto rate = read_rate_mb_per_s(folder);
      mine["read"] = rate ? Json(*rate) : Json();
    }
  }
  for (const auto& host : gather_json(comm, mine)) {
    if (host.is_null()) continue;
    const int gpus = host["gpus"];
    found.gpus = found.drivers.empty() ? gpus : std::min(found.gpus, gpus);
    found.drivers.push_back(host["driver"]);
    // A host whose folder cannot be written has no rate, and none is good then.
    if (host.contains("read")) {
      const double rate =
          host["read"].is_null() ? 0 : host["read"].get<double>();
      found.read_mb_per_s = std::min(found.read_mb_per_s.value_or(rate), rate);
    }
  }
}

}  // namespace

std::vector<AcceptanceRow> measure_acceptance(
    const NodeThresholds& wanted, const std::string& folder,
    const std::vector<CheckResult>& self_test, Communicator& comm,
    const Device& device) {
  NodeFigures found;
  look_at_hosts(found, wanted, folder, comm);
  if (wanted.images_per_s) found.images_per_s = images_per_s(comm, device);
  if (wanted.allreduce_gb_per_s && comm.size() > 1)
    found.allreduce_gb_per_s =
        measure_allreduce(comm, device, {28e6}, 5).back().bus_gb_per_s;
  found.self_test = std::ranges::all_of(self_test, [](const CheckResult& row) {
    return row.level == Level::kPass;
  });
  return compare(wanted, found);
}

}  // namespace chexnet
