// Who started this process, decided from environment variables (passed in, so
// that tests can replace them).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace chexnet {

// A variable, or null.
using Environment = std::function<const char*(const char*)>;
Environment process_environment();  // getenv
// The variable's text; empty where it is absent.
std::string variable(const Environment& env, const char* name);

// Of a command that a process of ours started, and of all below it: the number
// of that process.
constexpr const char* kCommandOfVariable = "CHEXNET_COMMAND_OF";
// True when mpirun, srun or another launcher that speaks PMIx or PMI started
// this process as a rank.
bool started_as_rank(const Environment& env);
// How many processes the launcher of this one started, as far as it says; 1
// where there was none.
int launched_processes(const Environment& env);

// How often our parent has started these ranks again.
int restarts_by_parent(const Environment& env);
constexpr const char* kRestartsVariable = "CHEXNET_RESTARTS";

// Several processes of a batch system, each of which believes it is alone: the
// message with the right command, or empty. `world_size` is what MPI said, 1
// where MPI was not started.
std::string singleton_problem(const Environment& env, int world_size);

// srun started fewer ranks than the host has GPUs (torchrun's habit), so that
// some would idle: the message with the right command, or empty. `gpus`: shown
// to this rank; `local_size`: ranks here.
std::string idle_gpus_problem(const Environment& env, int gpus, int local_size);
// srun gave this step fewer CPUs than the job asked for with -c: a warning, or
// empty.
std::string narrow_step_problem(const Environment& env, size_t cpus);

// Words that start the program at `path` in a fresh environment: itself, or the
// script of a bundle (CHEXNET_PROGRAM, with the LibTorch of CHEXNET_TORCH) that
// holds it and knows where LibTorch is.
std::vector<std::string> command_words(const Environment& env,
                                       const std::string& path);

// Compute threads of a rank whose `cpus` are shared by `sharers` ranks of the
// same host (itself included).
int threads_for(size_t cpus, int sharers);

std::string host_name();

}  // namespace chexnet
