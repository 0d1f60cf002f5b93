// doctor's rows about the launcher of ranks. Where the user wants no ranks
// (`needed` is false) a missing mpirun or MPI library is worth a warning and no
// failure: one rank needs neither.
#include "chexnet/app/start_rows.hpp"

#include <filesystem>
#include <system_error>

#include "chexnet/comm/mpi_library.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/start_checks.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// The path of mpirun itself, not of a link to it.
fs::path resolved(const std::string& program) {
  std::error_code error;
  return fs::weakly_canonical(program, error);
}

}  // namespace

CheckResult of_mpi_library(const LaunchConfig& config, const Mpirun& mpirun,
                           bool needed) {
  const Environment env = process_environment();
  // A rank loads its launcher's, whatever PATH says.
  const bool is_rank = started_as_rank(env);
  const fs::path launcher =
      is_rank ? own_launcher_program() : resolved(mpirun.path);
  const ChosenMpi chosen = choose_mpi(config.mpi, env, mpirun.name().family);
  LoadedMpi library;
  std::string problem;
  try {
    library = loaded_mpi_library(chosen.family, launcher);
  } catch (const PluginError& e) {
    problem = e.happened + ". Hint: " + e.hint;
  }
  return mpi_library_check(is_rank ? Mpirun{} : mpirun, library.name,
                           library.path, problem, needed);
}

std::vector<CheckResult> of_start(const LaunchConfig& config, bool needed,
                                  bool here) {
  std::vector<CheckResult> found = {
      temporary_folder_check(process_environment())};
  const Mpirun mpirun = find_mpirun(config.mpi);
  found.push_back(mpirun_check(mpirun, needed, config.mpi));
  found.push_back(of_mpi_library(config, mpirun, needed));
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
