// launch.network: which network gradients take, said once and turned into the
// settings of the MPI and of NCCL. They are set in each rank before MPI starts,
// so that they hold under every launcher; what the user set by hand is kept.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {

struct NetworkSettings {
  // OMPI_MCA_…, FI_…, UCX_…, NCCL_…
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> mpirun;  // for mpirun's own links
};

// kAuto: nothing, the libraries choose. kInfiniBand (and RoCE): by UCX.
// kOmniPath: by PSM2. kTcp: over one interface ("eth0", or the one in
// "10.1.0.0/16") or all. kUcx: UCX over whatever there is.
NetworkSettings network_settings(const NetworkChoice& network,
                                 MpiFamily family);

// Whether all ranks are on the host of this one, as far as its launcher says.
bool ranks_share_host(const Environment& env);
// For such ranks under kAuto: shared memory alone, so that MPI opens no port.
// Nothing where Open MPI's layers were chosen by hand.
NetworkSettings one_host_settings(const NetworkChoice& network,
                                  MpiFamily family, const Environment& env);

// Sets what is not set yet.
void apply(const NetworkSettings& settings);

}  // namespace chexnet
