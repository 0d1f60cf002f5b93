// The ranks of one command as processes below this one: started by mpirun, or
// one of them by itself, and watched until they end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/launch/restart_loop.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

class RankProcesses : public RankStarts {
 public:
  struct Options {
    std::filesystem::path run_folder = {};  // empty: they have none
    int64_t accumulate = 1;                 // train.accumulate
    bool reads_stdin = false;               // rank 0 does; without restarts
  };
  // `config`: of launch.timeout_s, in which mpirun must have reached all hosts,
  // and launch.min_hosts.
  RankProcesses(SelfLaunch whole, const LaunchConfig& config, Options options,
                RunRecords& records);

  RankEnd run() override;
  std::string end_text(int code) const override;
  bool asked_to_stop() const override { return signals_.asked_to_stop(); }
  bool stop_within(double seconds) override {
    return signals_.stop_within(seconds);
  }
  bool on_several_hosts() const override { return now_.layout.hosts > 1; }
  bool prepare(int restart, bool resumes) override;

 private:
  void explain_late_start(double limit_s);

  SelfLaunch whole_;  // on all hosts
  SelfLaunch now_;    // on those that were left at the last start
  LaunchConfig config_;
  Options options_;
  RunRecords& records_;
  ParentSignals signals_;
};

inline constexpr const char* kUnreachedHint =
    "do the hosts reach each other (launch.network, a firewall)?";

// Makes `words`, a command of `train`, go on with its run: with --resume auto,
// unless the user said --resume in any spelling.
void add_resume(std::vector<std::string>& words);

}  // namespace chexnet
