// `train` without a launcher: this process becomes a thin parent of mpirun. It
// turns SIGTERM, SIGINT, SIGUSR2 and SIGHUP into SIGUSR1 (mpirun itself would
// kill the ranks one second after a TERM); a second TERM or INT kills mpirun
// and the ranks.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/hosts.hpp"

namespace chexnet {

// True in a rank whose launcher is a child of `chexnet-train`: that parent
// prints the last line on the terminal.
bool started_by_parent(const Environment& env);
inline constexpr const char* kParentVariable = "CHEXNET_PARENT";

// What the user and the batch system want; 0 = not said.
struct RankRequest {
  int ranks = 0;           // all hosts together
  int ranks_per_host = 0;  // --ranks-per-node, --gpus
  int host_gpus = 0;  // GPUs this host shows; 0 also when computing on CPUs
};
struct RankLayout {
  int ranks = 1;
  int hosts = 1;
  int ranks_per_host = 0;  // 0: as the host file's slots say
};
// How many ranks to start, and where: of the request, else one for each GPU,
// else of the batch job or host file, else one. `hosts` may be empty (this
// host, or those of the batch job).
RankLayout decide_layout(const RankRequest& request, const BatchJob& job,
                         const std::vector<HostSlots>& hosts);

// Which mpirun starts ranks, as it is called (launch/start_checks.hpp finds
// it).
struct RankStarter {
  std::string command = "mpirun";
  MpiFamily family = MpiFamily::kOpenMpi;
  bool is_intel = false;  // MPICH's ABI, with other options
};

struct SelfLaunch {
  RankStarter mpirun;
  RankLayout layout;
  // Empty: this host, or those mpirun learns from the batch system.
  std::vector<HostSlots> hosts;
  std::string hostfile;  // that named them, to be read again; empty: none did
  // More ranks than cores here, or than slots of the batch job.
  bool oversubscribe = false;
  bool as_root = false;
  // Environment variables for ranks on other hosts, by name.
  std::vector<std::string> forwarded;
  std::vector<std::string> mpi_args;
  std::string program;
  std::vector<std::string> arguments;
  bool alone = false;  // one rank on this host: without mpirun
  // This host is the first, or the only one: mpirun starts ranks here as soon
  // as it reaches all.
  bool first_here = false;
};
// The command line that starts the ranks: mpirun's, for Open MPI or MPICH, or
// the program itself.
std::vector<std::string> start_command(const SelfLaunch& launch);

// Puts the ranks of launch.layout on `hosts`, which `hostfile` names (both
// empty: this host, or those of the batch job, which has `slots` for ranks; 0 =
// not said). `cpus`: of this host.
void put_on_hosts(SelfLaunch& launch, std::vector<HostSlots> hosts,
                  const std::string& hostfile, int slots, size_t cpus);

// The variables of `environment` ("NAME=value") that ranks on other hosts need,
// by name: settings of the libraries, and what the config refers to (`wanted`).
std::vector<std::string> forwarded_variables(
    const char* const* environment, const std::vector<std::string>& wanted);

// While it lives, signals that ask this process to stop (TERM, INT, USR1, USR2,
// HUP) wait until next() or stop_within() takes them: also between two
// commands. Make it before any thread exists; one at a time. After keep() they
// wait until the process ends, so that they no longer change its exit code.
class ParentSignals {
 public:
  ParentSignals();
  ~ParentSignals();
  void keep() { kept_ = true; }
  ParentSignals(const ParentSignals&) = delete;
  ParentSignals& operator=(const ParentSignals&) = delete;

  // The next signal (SIGCHLD too), or 0 after `seconds`.
  int next(double seconds);
  // Waits; true as soon as a signal asks to stop, or if one did before.
  bool stop_within(double seconds);
  bool asked_to_stop() const { return asked_ > 0; }
  int asked() const { return asked_; }  // how often
  // TERM or INT once more: the ranks are to end at once.
  bool ends_at_once() const { return ends_ > 1; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t waited_for_, before_;
  int asked_ = 0;
  int ends_ = 0;  // TERM and INT
  bool kept_ = false;
};

// Starts a command in a new process group that dies with this process.
struct ChildStreams {
  bool input = false;  // our stdin, which mpirun gives to rank 0; no terminal
  int out = -1, errors = -1;  // descriptors for its stdout and stderr; -1: none
};
pid_t start_child(const std::vector<std::string>& command,
                  const ParentSignals& signals, const ChildStreams& streams);

struct ParentWork {
  // Called once a second with the command's process; true ends it by force
  // (KILL, also of what mpirun started here).
  std::function<bool(pid_t)> ends_it = {};
  bool gives_stdin = false;
  // Where nobody reads mpirun's stdout any more it is asked to stop, and this
  // process ends by SIGPIPE as any filter does. Else it goes on.
  bool is_filter = false;
};
// Executes a command to its end and returns its exit code. Where the stdout of
// mpirun could not be written, std::cout is bad then. DeviceError when nobody
// knows how it ended.
int run_as_parent(const std::vector<std::string>& command,
                  ParentSignals& signals, const ParentWork& work = {});

}  // namespace chexnet
