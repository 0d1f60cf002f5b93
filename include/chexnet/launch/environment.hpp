// Who started this process, and what it was given: decided from environment variables (passed in,
// so tests can make them up) and the process's CPU affinity.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace chexnet {

using Environment = std::function<const char*(const char*)>;  // getenv, or a made-up one

// True when mpirun or a PMIx/PMI launcher started this process as a rank.
bool started_as_rank(const Environment& env);

// Several processes of a batch system, each of which believes to be alone: the message with the
// right command, or empty. `world_size` is what MPI said, 1 where MPI was not started.
std::string singleton_problem(const Environment& env, int world_size);

// CPUs this process may run on.
std::vector<int> allowed_cpus();

// Compute threads of a rank whose `cpus` are shared by `sharers` ranks of the same host (itself
// included).
int threads_for(std::size_t cpus, int sharers);

// "0-3,8" for people.
std::string cpu_list_text(const std::vector<int>& cpus);

std::string host_name();

}  // namespace chexnet
