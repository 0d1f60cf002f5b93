// The ranks that a launcher starts on this host, as their parent sees them, and
// the launcher, as a rank sees it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chexnet {

// The processes below `ancestor` that were started as ranks.
std::vector<pid_t> ranks_below(pid_t ancestor);
// Whether there are any, and the job has no rank on another host
// (ranks_share_host).
bool has_all_ranks_below(pid_t ancestor);
// Whether a signal (SIGSTOP) or a debugger has stopped it.
bool is_stopped(pid_t process);
// Whether it has ended, and its parent has not waited for it.
bool is_zombie(pid_t process);
// How such a process ended, as waitpid() would say it; nothing of another one.
std::optional<int> wait_status_of(pid_t zombie);
// Its number among the ranks, as Open MPI says it; empty where nobody does.
std::string rank_number_of(pid_t rank);
// Whether it is there, and no zombie.
bool is_running(pid_t process);
// Whether one of its threads is in a wait of the kernel that no signal ends, as
// for storage or a driver that does not answer: such a process cannot end.
bool waits_in_kernel(pid_t process);

// The MPI launchers on this host that this process was started by, directly or
// through others, the nearest first.
std::vector<pid_t> own_launchers();
// The program of the nearest ("/opt/openmpi/bin/orted"); empty where none was.
std::filesystem::path own_launcher_program();

}  // namespace chexnet
