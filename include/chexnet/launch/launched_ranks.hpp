// What a parent can see of the ranks that its launcher starts on this host, and
// a rank of its launcher.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace chexnet {

// Whether a process below `ancestor` was started as a rank.
bool has_ranks_below(pid_t ancestor);
// The same where the job has no rank on another host (ranks_share_host).
bool has_all_ranks_below(pid_t ancestor);

// The program of the MPI launcher that this process was started by, directly or
// through others ("/opt/openmpi/bin/orted"); empty where none was.
std::filesystem::path own_launcher_program();

}  // namespace chexnet
