// Descriptions of clusters, and the plan that is made of them.
#include "chexnet/tools/plan/cluster_file.hpp"

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile file;
  Cluster cluster;
  const std::string path = file.holding(bytes);
  if (!accepted<ConfigError>([&] { cluster = read_cluster(path); })) return;
  require(cluster.fabric.gpus_per_node >= 1, "a host has a GPU");
  require(
      cluster.fabric.intra_gb_per_s > 0 && cluster.fabric.inter_gb_per_s > 0,
      "there is a network");
  StepCosts step;
  step.compute_s = 0.1;
  step.gradient_bytes = 28e6;
  for (const int ranks : {1, 2, 64})
    require(
        predict(step, cluster.loader, cluster.fabric, 16, ranks).ranks == ranks,
        "a plan is for the ranks that were asked for");
}

std::vector<std::string> seeds() {
  return {
      "name: v100\ngpus_per_node: 4\nintra_gb_per_s: 130\n"
      "inter_gb_per_s: 11.5\nintra_latency_us: 3\noverlap: true\n"
      "loader: {images_per_s: 600, shares_cores: false}\n",
      "gpus_per_node: 1e2\njitter: 0x1p-4\nbatch: 64\nimages_per_s: 970\n"};
}

const Registered kTarget{{"cluster_file", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
