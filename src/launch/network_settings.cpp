#include "chexnet/launch/network_settings.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <string_view>

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

// MPICH has UCX, libfabric (FI_…) or both below it, and each reads its own.
Variables for_mpich(const NetworkChoice& network) {
  switch (network.kind) {
    case NetworkChoice::Kind::kOmniPath:
      return {{"FI_PROVIDER", "psm2"}};
    case NetworkChoice::Kind::kUcx:
      return {{"MPIR_CVAR_CH4_NETMOD", "ucx"}};
    case NetworkChoice::Kind::kTcp: {
      Variables set = {{"FI_PROVIDER", "tcp"}, {"UCX_TLS", "tcp,sm,self"}};
      const bool is_subnet = network.device.find('/') != std::string::npos;
      if (network.device.empty() || is_subnet) return set;
      set.emplace_back("FI_TCP_IFACE", network.device);
      set.emplace_back("UCX_NET_DEVICES", network.device);
      return set;
    }
    default:
      return {};
  }
}

NetworkSettings for_open_mpi(const NetworkChoice& network) {
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

}  // namespace

NetworkSettings network_settings(const NetworkChoice& network,
                                 MpiFamily family) {
  NetworkSettings settings = for_open_mpi(network);
  if (family == MpiFamily::kOpenMpi) return settings;
  std::erase_if(settings.environment, [](const auto& variable) {
    return variable.first.starts_with("OMPI_");
  });
  const Variables own = for_mpich(network);
  settings.environment.insert(settings.environment.end(), own.begin(),
                              own.end());
  settings.mpirun.clear();
  const bool one_interface =
      network.kind == NetworkChoice::Kind::kTcp && !network.device.empty() &&
      network.device.find_first_of("/,") == std::string::npos;
  if (one_interface) settings.mpirun = {"-iface", network.device};
  return settings;
}

bool ranks_share_host(const Environment& env) {
  // The ranks of this host and of all; Hydra's names come after Open MPI's.
  static constexpr std::array<std::array<const char*, 2>, 2> kCounts = {
      {{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
       {"MPI_LOCALNRANKS", "PMI_SIZE"}}};
  for (const auto& [here, all] : kCounts)
    if (env(here) != nullptr && env(all) != nullptr)
      return std::string_view(env(here)) == env(all);
  return variable(env, "SLURM_STEP_NUM_NODES") == "1";
}

NetworkSettings one_host_settings(const NetworkChoice& network,
                                  MpiFamily family, const Environment& env) {
  if (network.kind != NetworkChoice::Kind::kAuto) return {};
  if (family == MpiFamily::kOpenMpi) {
    static constexpr std::array<const char*, 3> kLayers = {
        "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl"};
    if (std::ranges::any_of(
            kLayers, [&](const char* name) { return env(name) != nullptr; }))
      return {};
    return {{{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "vader,self"}}, {}};
  }
  // libfabric's sockets cannot be left out alike in all versions.
  return {{{"UCX_TLS", "sm,self"},
           {"FI_TCP_IFACE", "lo"},
           {"FI_SOCKETS_IFACE", "lo"}},
          {}};
}

void apply(const NetworkSettings& settings) {
  constexpr int kKeepExisting = 0;
  for (const auto& [name, value] : settings.environment)
    setenv(name.c_str(), value.c_str(), kKeepExisting);
}

}  // namespace chexnet
