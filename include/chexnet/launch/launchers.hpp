// The programs that start ranks, as the kernel names their processes.
#pragma once

#include <sys/types.h>

#include <array>
#include <string_view>

namespace chexnet {

struct RankLauncher {
  std::string_view process;  // of at most 15 characters
  // Ends with the job that it started; a batch system's daemon does not.
  bool of_mpi;
  bool is_daemon = false;  // mpirun's, on another host
};

// Debian names Open MPI's and MPICH's apart. Hydra, MPICH's, has a proxy on
// mpirun's host too.
inline constexpr std::array<RankLauncher, 14> kRankLaunchers = {
    {{"mpirun", true},
     {"mpiexec", true},
     {"mpirun.openmpi", true},
     {"mpiexec.openmpi", true},
     {"orterun", true},
     {"orted", true, true},
     {"prterun", true},
     {"prted", true, true},
     {"mpirun.mpich", true},
     {"mpiexec.mpich", true},
     {"mpiexec.hydra", true},
     {"hydra_pmi_proxy", true, true},
     {"srun", false},
     {"slurmstepd", false}}};

// Null for other programs. Takes no memory and no lock.
constexpr const RankLauncher* find_launcher(std::string_view process) {
  for (const auto& launcher : kRankLaunchers)
    if (launcher.process == process) return &launcher;
  return nullptr;
}

// Variables that the srun obeys by which mpirun starts its daemons (tried with
// Slurm 22.05, of later ones SLURM_TRES_PER_TASK): its step, and so the ranks
// of all hosts but the first, would have that many cores and not the job's.
// With SLURM_EXCLUSIVE it fails.
inline constexpr std::array<const char*, 4> kStepVariables = {
    "SRUN_CPUS_PER_TASK", "SLURM_EXACT", "SLURM_EXCLUSIVE",
    "SLURM_TRES_PER_TASK"};

// The three below make system calls alone, so they are safe in a signal handler
// and in the child of any thread.

// Whether the process with this number is a launcher of MPI.
bool is_mpi_launcher(pid_t process);
// Whether it is one on another host than mpirun's.
bool is_mpi_daemon(pid_t process);

// For a child that stays behind to wait for a launcher's end: closes all its
// files but one. A launcher reads its ranks' output until the last holder
// closes it.
void close_files_but(int kept);

}  // namespace chexnet
