// The surroundings of the watchdog's parts as plain values: a host's shared
// memory, a run folder, the end of a process. A test says what happens and
// when. One thread, no sockets, no sleep.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/watch/host_ranks.hpp"
#include "comm/watch/messages.hpp"
#include "comm/watch/run_end.hpp"

namespace chexnet {

inline const RunTokens kRunTokens = {"report-token", "answer-token"};

// The shared memory of a host.
struct FakeHost {
  struct Rank {
    int rank = 0;
    double heartbeat_s = 0, since_s = 0;
    Phase phase = Phase::kBackward;
    uint64_t sequence = 812;
    int64_t step = 40;
    bool gone = false;
    bool still = false;  // its main thread hangs
  };
  std::string name;
  std::vector<Rank> ranks;
  int end_code = 0;
};

class FakeHostRanks final : public HostRanks {
 public:
  FakeHostRanks(FakeHost& host, int own, const double& now)
      : host_(host), own_(own), now_(now) {}
  int size() const override { return static_cast<int>(host_.ranks.size()); }
  RankView view(int local_rank) override {
    const auto& rank = host_.ranks.at(static_cast<size_t>(local_rank));
    RankView view;
    view.rank = rank.rank;
    view.pid = 100 + rank.rank;
    view.phase = rank.phase;
    view.ended = rank.phase == Phase::kEnded;
    view.gone = rank.gone && !view.ended;
    view.heartbeat_age_s = now_ - rank.heartbeat_s;
    view.phase_age_s = now_ - rank.since_s;
    view.sequence = rank.sequence;
    view.step = rank.step;
    return view;
  }
  void set_heartbeat(double now_s) override {
    host_.ranks.at(static_cast<size_t>(own_)).heartbeat_s = now_s;
  }
  int end_code() const override { return host_.end_code; }
  void set_end_code(int code) override { host_.end_code = code; }

 private:
  FakeHost& host_;
  int own_;
  const double& now_;
};

// What a run leaves behind; all its processes see the same folder.
struct FakeRunFolder {
  // One for each post-mortem that was written.
  std::vector<std::string> sentences;
  std::vector<std::string> causes;
  std::vector<int> named;  // ranks, by the last of them
  std::vector<std::string> log;
  double explained_s = -1;
  int explained_by = -1;
  bool broken = false;  // writes fail
};

class FakeEnd final : public RunEnd {
 public:
  FakeEnd(FakeRunFolder& folder, int rank, const double& now)
      : folder_(folder), rank_(rank), now_(now) {}
  bool launcher_ends_job() const override { return launcher_ends; }
  void exit_within_limit(int code) override { limited = code; }
  void explain(const Failure& failure,
               const std::vector<RankView>& views) override {
    if (!folder_.sentences.empty()) return;
    if (folder_.broken) throw std::runtime_error("[files] no space left");
    folder_.sentences.push_back(failure_text(failure, views));
    folder_.causes.emplace_back(cause_name(failure.cause));
    folder_.named = failure.ranks;
    folder_.explained_s = now_;
    folder_.explained_by = rank_;
  }
  void log_line(const std::string& error) override {
    folder_.log.push_back(error);
  }
  void end_process(int code) override { exit_code = code; }

  bool launcher_ends = false;
  std::optional<int> limited, exit_code;

 private:
  FakeRunFolder& folder_;
  int rank_;
  const double& now_;
};

}  // namespace chexnet
