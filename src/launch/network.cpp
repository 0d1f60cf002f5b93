#include "chexnet/launch/network.hpp"

#include <cassert>
#include <cstdlib>

namespace chexnet {

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables infiniband(const std::string& device) {
  Variables set = {{"OMPI_MCA_pml", "ucx"}};
  if (!device.empty()) {
    set.emplace_back("UCX_NET_DEVICES",
                     device + ":1");  // a device and its port
    set.emplace_back("NCCL_IB_HCA", device);
  }
  set.emplace_back("NCCL_IB_DISABLE", "0");
  return set;
}

// ob1 over tcp, with shared memory (vader) inside a host and self for a rank's
// messages to itself.
Variables tcp(const std::string& device) {
  Variables set = {{"OMPI_MCA_pml", "ob1"},
                   {"OMPI_MCA_btl", "tcp,vader,self"},
                   {"NCCL_IB_DISABLE", "1"}};
  if (device.empty()) return set;
  set.emplace_back("OMPI_MCA_btl_tcp_if_include", device);
  // NCCL knows interfaces by name only.
  const bool is_subnet = device.find('/') != std::string::npos;
  if (!is_subnet) set.emplace_back("NCCL_SOCKET_IFNAME", device);
  return set;
}

}  // namespace

NetworkSettings network_settings(const NetworkChoice& network) {
  switch (network.kind) {
    case NetworkChoice::Kind::kAuto:
      return {};
    case NetworkChoice::Kind::kInfiniBand:
      return {infiniband(network.device), {}};
    case NetworkChoice::Kind::kOmniPath:
      // NCCL speaks verbs to the same adapter.
      return {{{"OMPI_MCA_pml", "cm"},
               {"OMPI_MCA_mtl", "psm2"},
               {"NCCL_IB_HCA", "hfi1"}},
              {}};
    case NetworkChoice::Kind::kUcx:
      // Without InfiniBand Open MPI would refuse UCX, unless told to take it
      // over anything.
      return {{{"OMPI_MCA_pml", "ucx"},
               {"OMPI_MCA_pml_ucx_tls", "any"},
               {"OMPI_MCA_pml_ucx_devices", "any"}},
              {}};
    case NetworkChoice::Kind::kTcp: {
      NetworkSettings settings{tcp(network.device), {}};
      if (!network.device.empty())
        settings.mpirun = {"--mca", "oob_tcp_if_include", network.device};
      return settings;
    }
  }
  assert(false && "a network without settings");
  return {};
}

void apply(const NetworkSettings& settings) {
  constexpr int kKeepExisting = 0;
  for (const auto& [name, value] : settings.environment)
    setenv(name.c_str(), value.c_str(), kKeepExisting);
}

}  // namespace chexnet
