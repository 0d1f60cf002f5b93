// The programs that start ranks, as the kernel names their processes.
#pragma once

#include <array>
#include <string_view>

namespace chexnet {

struct RankLauncher {
  std::string_view process;  // of at most 15 characters
  bool of_mpi;  // ends with the job that it started; a batch system's daemon
                // does not
};

inline constexpr std::array<RankLauncher, 8> kRankLaunchers = {
    {{"mpirun", true},
     {"mpiexec", true},
     {"orterun", true},
     {"orted", true},
     {"prterun", true},
     {"prted", true},
     {"srun", false},
     {"slurmstepd", false}}};

// Null for other programs. Takes no memory and no lock.
constexpr const RankLauncher* find_launcher(std::string_view process) {
  for (const auto& launcher : kRankLaunchers)
    if (launcher.process == process) return &launcher;
  return nullptr;
}

}  // namespace chexnet
