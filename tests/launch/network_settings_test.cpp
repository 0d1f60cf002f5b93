#include "chexnet/launch/network_settings.hpp"

#include <cstdlib>

#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "support/catch.hpp"
#include "support/fake_environment.hpp"

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

TEST_CASE("ranks of one host take no network, unless told by hand") {
  using Variables = std::map<std::string, std::string>;
  const auto layers = [](const char* network, MpiFamily family,
                         const Variables& variables) {
    const auto settings = one_host_settings(*NetworkChoice::parse(network),
                                            family, fake(variables));
    return settings.environment.empty() ? ""
                                        : settings.environment.back().second;
  };
  CHECK(layers("auto", MpiFamily::kOpenMpi, {}) == "vader,self");
  CHECK(layers("tcp", MpiFamily::kOpenMpi, {}).empty());
  CHECK(layers("auto", MpiFamily::kOpenMpi, {{"OMPI_MCA_btl", "tcp,self"}})
            .empty());
  CHECK(layers("auto", MpiFamily::kMpich, {}) == "lo");
  CHECK(layers("ucx", MpiFamily::kMpich, {}).empty());

  for (const auto& [variables, share] : std::vector<std::pair<Variables, bool>>{
           {{{"OMPI_COMM_WORLD_SIZE", "4"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
            true},
           {{{"OMPI_COMM_WORLD_SIZE", "4"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
             {"SLURM_STEP_NUM_NODES", "1"}},
            false},
           {{{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}, true},
           {{{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_NODES", "1"}}, true},
           {{{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_NODES", "2"}}, false},
           {{{"PMIX_RANK", "0"}}, false}})
    CHECK(ranks_share_host(fake(variables)) == share);
}
