// A cluster described in YAML (configs/clusters/), for `bench scaling`.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/tools/plan/scaling_model.hpp"

namespace chexnet {

struct Cluster {
  std::string name;
  Fabric fabric;
  double jitter = 0.01;
  bool overlap = true;
  double coordination_ms = 0;
  // Of one rank; 0 = not set (the command line sets them).
  double images_per_s = 0, batch = 0;
  double gradient_bytes = 4;  // of one number of a gradient on the network
  LoaderCosts loader;
};

// Keys: name, gpus_per_node, intra_gb_per_s, inter_gb_per_s, intra_latency_us,
// inter_latency_us, jitter, overlap, coordination_ms, images_per_s, batch,
// gradient_bytes, loader.{images_per_s, every_rank_decodes_all, shares_cores,
// storage_gb_per_s, bytes_per_image}. ConfigError with file and line for
// others.
Cluster read_cluster(const std::filesystem::path& path);

}  // namespace chexnet
