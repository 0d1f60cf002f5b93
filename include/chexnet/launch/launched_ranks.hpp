// What a parent can see of the ranks that its launcher starts on this host.
#pragma once

#include <sys/types.h>

namespace chexnet {

// Whether a process below `ancestor` was started as a rank.
bool has_ranks_below(pid_t ancestor);

}  // namespace chexnet
