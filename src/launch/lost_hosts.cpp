// The launcher itself tests hosts, by its way to them (ssh, a batch system's
// daemon, launch.mpi_args): all of them by one command, and only where that
// fails each by a separate command, some at a time.
//
//   all at once   -> exit 0: nobody is lost
//        | fails, or takes too long
//        v
//   each by itself, again after a pause, until limit_s -> who never answered
#include "lost_hosts.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cassert>

#include "chexnet/core/clock.hpp"

namespace chexnet {
namespace {

using Hosts = std::vector<HostSlots>;

constexpr size_t kAskedAtOnce = 16;
constexpr double kPause_s = 3;

// Which of `commands` end well until `end_s`; the others are killed with what
// they started here.
std::vector<bool> which_end_well(
    const std::vector<std::vector<std::string>>& commands, double end_s,
    ParentSignals& signals) {
  std::vector<pid_t> running;
  for (const auto& command : commands)
    running.push_back(start_child(command, signals, {}));
  std::vector<bool> well(commands.size(), false);
  const auto look = [&](size_t i) {
    int status = 0;
    if (running[i] <= 0 || waitpid(running[i], &status, WNOHANG) == 0) return;
    well[i] = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    running[i] = 0;
  };
  const auto is_running = [](pid_t child) { return child > 0; };
  while (std::ranges::any_of(running, is_running) && now_s() < end_s &&
         !signals.asked_to_stop()) {
    constexpr double kLook_s = 0.2;
    signals.next(kLook_s);
    for (size_t i = 0; i < running.size(); ++i) look(i);
  }
  for (const pid_t child : running) {
    if (!is_running(child)) continue;
    kill(-child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return well;
}

// Those of `hosts` that do not answer until `end_s`.
Hosts silent_of(const SelfLaunch& launch, const Hosts& hosts, double end_s,
                ParentSignals& signals) {
  Hosts silent;
  for (size_t from = 0; from < hosts.size(); from += kAskedAtOnce) {
    const size_t to = std::min(from + kAskedAtOnce, hosts.size());
    std::vector<std::vector<std::string>> commands;
    for (size_t i = from; i < to; ++i)
      commands.push_back(probe_command(launch, {hosts[i]}));
    const auto well = which_end_well(commands, end_s, signals);
    for (size_t i = from; i < to; ++i)
      if (!well[i - from]) silent.push_back(hosts[i]);
  }
  return silent;
}

}  // namespace

int ranks_on(const std::vector<HostSlots>& hosts, int ranks_per_host) {
  int ranks = 0;
  for (const auto& host : hosts)
    ranks += ranks_per_host > 0 ? ranks_per_host : host.slots;
  return ranks;
}

RankShare ranks_that_share(int64_t batch, RankShare before, int most) {
  assert(batch > 0 && before.ranks > 0 && before.accumulate > 0);
  const int64_t largest =
      std::max<int64_t>(1, batch / (before.ranks * before.accumulate));
  const int64_t least =
      std::max((largest + 1) / 2, std::min<int64_t>(largest, 2));
  for (int ranks = most; ranks > 1; --ranks) {
    if (batch % ranks != 0) continue;
    const int64_t own = batch / ranks;
    const int64_t fewest = (own + largest - 1) / largest;
    for (int64_t parts = std::max(before.accumulate, fewest);
         parts * least <= own; ++parts)
      if (own % parts == 0) return {ranks, parts};
  }
  return {1, batch / largest};
}

std::string hostfile_text(const std::vector<HostSlots>& hosts) {
  std::string text;
  for (const auto& host : hosts)
    text += host.name + " slots=" + std::to_string(host.slots) + "\n";
  return text;
}

std::vector<std::string> probe_command(const SelfLaunch& launch,
                                       const std::vector<HostSlots>& hosts) {
  SelfLaunch asking = launch;
  asking.alone = false;
  asking.hosts = hosts;
  const auto count = static_cast<int>(hosts.size());
  asking.layout = {count, count, 1};
  asking.program = "true";
  asking.arguments.clear();
  return start_command(asking);
}

std::vector<std::string> lost_hosts(const SelfLaunch& launch, double limit_s,
                                    ParentSignals& signals) {
  const double end_s = now_s() + limit_s;
  // Half of the time at most: hosts that do not answer are then tested one by
  // one.
  const bool all_answer = which_end_well({probe_command(launch, launch.hosts)},
                                         now_s() + limit_s / 2, signals)
                              .front();
  Hosts silent;
  if (!all_answer) {
    for (const auto& host : launch.hosts)
      if (!is_this_host(host.name)) silent.push_back(host);
    silent = silent_of(launch, silent, end_s, signals);
    while (!silent.empty() && now_s() + kPause_s < end_s &&
           !signals.stop_within(kPause_s))
      silent = silent_of(launch, silent, end_s, signals);
  }
  std::vector<std::string> names;
  for (const auto& host : silent) names.push_back(host.name);
  return names;
}

}  // namespace chexnet
