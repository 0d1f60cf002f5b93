// `train` without a launcher: this process becomes a thin parent of mpirun. It turns SIGTERM and
// SIGINT into SIGUSR1 (mpirun itself would kill the ranks one second after a TERM); a second one
// goes through as TERM.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// mpirun's command line for `ranks` ranks of `program` with `arguments`.
std::vector<std::string> mpirun_command(int ranks, std::size_t cpus, bool as_root,
                                        const std::vector<std::string>& mpi_args,
                                        const std::string& program,
                                        const std::vector<std::string>& arguments);

// Runs it to its end and returns its exit code. Call before any thread exists.
int run_as_parent(const std::vector<std::string>& command);

}  // namespace chexnet
