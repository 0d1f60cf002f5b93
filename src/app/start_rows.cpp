// doctor's rows about what starts ranks. Where no ranks are asked for (`needed`
// is false) a missing mpirun or MPI library is worth a warning and no failure:
// one rank needs neither.
#include "start_rows.hpp"

#include "chexnet/comm/mpi_library.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/start_checks.hpp"

namespace chexnet {

std::vector<CheckResult> of_start(const LaunchConfig& config, bool needed,
                                  bool here) {
  std::vector<CheckResult> found = {
      temporary_folder_check(process_environment())};
  const Mpirun mpirun = find_mpirun();
  found.push_back(mpirun_check(mpirun, needed));
  std::string library, problem;
  try {
    library = loaded_mpi_library();
  } catch (const DeviceError& e) {
    problem = e.what();
  }
  found.push_back(mpi_library_check(mpirun, library, problem, needed));
  NetworkFacts facts = read_network_facts(&mpirun);
  if (!here) facts.adapters.reset();
  found.push_back(network_check(config.network, facts));
  return found;
}

bool wants_ranks(const LaunchConfig& config) {
  return config.ranks > 1 || config.ranks_per_node > 1 ||
         !config.hostfile.empty();
}

LaunchConfig one_rank(LaunchConfig config) {
  config.ranks = 1;
  config.ranks_per_node = 0;
  config.hostfile.clear();
  return config;
}

}  // namespace chexnet
