#include "chexnet/launch/network.hpp"

#include <cstdlib>

#include "chexnet/launch/self_launch.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

std::string settings_text(const std::string& network, MpiFamily family) {
  std::string found;
  const auto settings =
      network_settings(*NetworkChoice::parse(network), family);
  for (const auto& [name, value] : settings.environment)
    found += name + "=" + value + " ";
  return found + command_text(settings.mpirun);
}

}  // namespace

TEST_CASE("networks become settings of MPICH and NCCL") {
  const auto text = [](const std::string& network) {
    return settings_text(network, MpiFamily::kMpich);
  };
  CHECK(text("auto").empty());
  CHECK(text("ib:mlx5_0") ==
        "UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA=mlx5_0 NCCL_IB_DISABLE=0 ");
  CHECK(text("opa") == "NCCL_IB_HCA=hfi1 FI_PROVIDER=psm2 ");
  CHECK(text("ucx") == "MPIR_CVAR_CH4_NETMOD=ucx ");
  CHECK(text("tcp:eth0") ==
        "NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=eth0 FI_PROVIDER=tcp "
        "UCX_TLS=tcp,sm,self FI_TCP_IFACE=eth0 UCX_NET_DEVICES=eth0 -iface "
        "eth0");
  CHECK(text("tcp:10.1.0.0/16") ==
        "NCCL_IB_DISABLE=1 FI_PROVIDER=tcp UCX_TLS=tcp,sm,self ");
}

TEST_CASE("networks become settings of Open MPI and NCCL") {
  const auto text = [](const std::string& network) {
    return settings_text(network, MpiFamily::kOpenMpi);
  };
  CHECK(text("auto").empty());
  CHECK(text("ib:mlx5_0") ==
        "OMPI_MCA_pml=ucx UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA=mlx5_0 "
        "NCCL_IB_DISABLE=0 ");
  CHECK(text("opa") == "OMPI_MCA_pml=cm OMPI_MCA_mtl=psm2 NCCL_IB_HCA=hfi1 ");
  CHECK(text("tcp:eth0") ==
        "OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self NCCL_IB_DISABLE=1 "
        "OMPI_MCA_btl_tcp_if_include=eth0 NCCL_SOCKET_IFNAME=eth0 --mca "
        "oob_tcp_if_include eth0");
  CHECK(text("tcp:10.1.0.0/16").find("NCCL_SOCKET_IFNAME") ==
        std::string::npos);
  setenv("UCX_NET_DEVICES", "mine", 1);
  apply(network_settings(*NetworkChoice::parse("ib:mlx5_0"),
                         MpiFamily::kOpenMpi));
  CHECK(std::string(getenv("UCX_NET_DEVICES")) == "mine");
  for (const char* name :
       {"UCX_NET_DEVICES", "OMPI_MCA_pml", "NCCL_IB_HCA", "NCCL_IB_DISABLE"})
    unsetenv(name);
}
