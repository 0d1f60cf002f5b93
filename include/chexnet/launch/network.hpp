// launch.network: which network gradients take, said once and turned into the settings of Open MPI
// and NCCL. They are set in each rank before MPI starts, so that they hold under every launcher;
// what the user set by hand stays.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chexnet {

struct NetworkSettings {
  std::vector<std::pair<std::string, std::string>> environment;  // OMPI_MCA_…, UCX_…, NCCL_…
  std::vector<std::string> mpirun;                               // for mpirun's own links
};

// "auto" (libraries choose), "ib" or "ib:mlx5_0" (InfiniBand and RoCE by UCX), "opa" (Omni-Path by
// PSM2), "tcp" or "tcp:eth0" (that interface, or "10.1.0.0/16"), "ucx" (UCX over whatever there
// is). ConfigError for others.
NetworkSettings network_settings(const std::string& network);

// Sets what is not set yet.
void apply(const NetworkSettings& settings);

}  // namespace chexnet
