// What Open MPI's mpirun, or its daemon on another host, keeps on a host while
// its job runs: a folder in TMPDIR (some MB), and shared memory of its ranks in
// /dev/shm. It removes them at its end, but not when it is killed.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace chexnet {

// Of the mpirun or daemon with this process number, which has ended, and this
// user.
// Errors are passed over: what stays costs space and nothing else.
void remove_launcher_files(pid_t launcher,
                           const std::filesystem::path& temporary_folder,
                           const std::filesystem::path& shared_memory);

// Starts a small process that waits for the end of `launcher`, however that
// comes, removes its files and ends. It belongs to no group or session of the
// job and is nobody's child, so what kills launcher and ranks spares it.
void remove_launcher_files_after(pid_t launcher);

// In a rank, before it has threads: the first rank of each host does the same
// for the mpirun or daemon that started it. Not for an mpirun that our parent
// started: the parent does so itself.
void remove_files_after_launcher();

}  // namespace chexnet
