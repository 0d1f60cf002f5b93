// Finds what keeps mpirun and MPI from starting ranks before the start: they
// report it in thirty lines, or not at all. Decisions are pure; functions
// beside them read the facts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/launch/mpi_family.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

struct Mpirun {
  std::string path;  // empty: none in PATH
  std::string says;  // of its version, all of it
  MpiName name() const { return mpi_name_in(says); }
};
// The mpirun in PATH. `wanted`: where that is of another MPI, by the names
// under which it may be beside it, such as Debian's mpirun.mpich; what is of no
// use is returned where none fits.
Mpirun find_mpirun(std::optional<MpiFamily> wanted);
// The command to call it: its name alone where PATH leads to it. Where it is
// not known, that of `wanted`.
RankStarter rank_starter(const Mpirun& mpirun, std::optional<MpiFamily> wanted);

// `needed`: ranks are to be started by it; else what is wrong is only worth a
// warning. `wanted`: launch.mpi.
CheckResult mpirun_check(const Mpirun& mpirun, bool needed,
                         std::optional<MpiFamily> wanted = {});
// `library`: what ranks load, as it names itself, `path`: where it is;
// `problem`: why it cannot be loaded.
CheckResult mpi_library_check(const Mpirun& mpirun, const MpiName& library,
                              const std::string& path,
                              const std::string& problem, bool needed);

// The folder for temporary files, where MPI keeps what ranks of a host share.
// Writes a small file.
CheckResult temporary_folder_check(const Environment& env);

struct NetworkFacts {
  std::vector<std::string> interfaces;  // "eth0", each once
  std::vector<std::string> addresses;   // of them, IPv4
  // InfiniBand, RoCE and Omni-Path, "mlx5_0"; nothing: ranks run where we
  // cannot look.
  std::optional<std::vector<std::string>> adapters;
  std::optional<bool> ucx;  // Open MPI can use it; nothing: not known
};
// `mpirun`: its installation is checked for UCX, which takes a while; null: not
// checked.
NetworkFacts read_network_facts(const Mpirun* mpirun);
// Whether launch.network can work.
CheckResult network_check(const NetworkChoice& network,
                          const NetworkFacts& facts);

// Throws the first check that failed as one sentence: ConfigError where the
// config names what is not there, else DeviceError.
void refuse_failed(const std::vector<CheckResult>& checks);

}  // namespace chexnet
