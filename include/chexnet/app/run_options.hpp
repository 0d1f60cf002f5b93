// What the subcommands that run a network share: config files and overrides, the number of ranks,
// and how the world of ranks comes to be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/app/commands.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"

namespace chexnet {

// --set key=value, which overrides `what`.
void add_set_option(CLI::App& command, std::vector<std::string>& set, const std::string& what);

// This process as one of a world of ranks, or as the parent that starts them.
struct Launch {
  std::unique_ptr<Communicator> comm;  // set in a rank
  int parent_exit_code = 0;            // of mpirun, in a parent (comm is null)
};

// `ranks` wanted when no launcher started this process: > 1 starts mpirun and waits. Sets
// invocation.abort in a rank.
Launch enter_world(const LaunchConfig& config, Invocation& invocation);

}  // namespace chexnet
