#include "chexnet/launch/network.hpp"

#include <cstdlib>

#include "chexnet/core/error.hpp"

namespace chexnet {

NetworkSettings network_settings(const std::string& network) {
  const auto colon = network.find(':');
  const std::string kind = network.substr(0, colon);
  const std::string device = colon == std::string::npos ? "" : network.substr(colon + 1);
  NetworkSettings settings;
  const auto set = [&](const std::string& name, const std::string& value) {
    settings.environment.emplace_back(name, value);
  };
  if (kind == "auto" && device.empty()) return settings;
  if (kind == "ib") {
    set("OMPI_MCA_pml", "ucx");
    if (!device.empty()) {
      set("UCX_NET_DEVICES", device + ":1");  // a device and its port
      set("NCCL_IB_HCA", device);
    }
    set("NCCL_IB_DISABLE", "0");
    return settings;
  }
  if (kind == "opa" && device.empty()) {
    set("OMPI_MCA_pml", "cm");
    set("OMPI_MCA_mtl", "psm2");
    set("NCCL_IB_HCA", "hfi1");  // NCCL speaks verbs to the same adapter
    return settings;
  }
  if (kind == "ucx" && device.empty()) {
    // Without InfiniBand Open MPI would refuse UCX.
    set("OMPI_MCA_pml", "ucx");
    set("OMPI_MCA_pml_ucx_tls", "any");
    set("OMPI_MCA_pml_ucx_devices", "any");
    return settings;
  }
  if (kind == "tcp") {
    set("OMPI_MCA_pml", "ob1");
    set("OMPI_MCA_btl", "tcp,vader,self");
    set("NCCL_IB_DISABLE", "1");
    if (!device.empty()) {
      set("OMPI_MCA_btl_tcp_if_include", device);
      settings.mpirun = {"--mca", "oob_tcp_if_include", device};
      // NCCL knows interfaces by name only.
      if (device.find('/') == std::string::npos) set("NCCL_SOCKET_IFNAME", device);
    }
    return settings;
  }
  throw ConfigError("[launch] launch.network: '" + network +
                    "' is not known. Hint: auto, ib, ib:mlx5_0, opa, ucx, tcp, tcp:eth0 or "
                    "tcp:10.1.0.0/16");
}

void apply(const NetworkSettings& settings) {
  constexpr int kKeepExisting = 0;
  for (const auto& [name, value] : settings.environment)
    setenv(name.c_str(), value.c_str(), kKeepExisting);
}

}  // namespace chexnet
