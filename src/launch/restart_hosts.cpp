#include "restart_hosts.hpp"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "lost_hosts.hpp"

namespace chexnet {
namespace {

using Hosts = std::vector<HostSlots>;

// A host file or a batch system may name a replacement by now; a file that is
// no longer readable changes nothing.
Hosts known_hosts(const SelfLaunch& whole) {
  const RankLayout& layout = whole.layout;
  Hosts hosts;
  try {
    hosts = hosts_of_run(whole.hostfile, process_environment(), ask_command);
  } catch (const ConfigError& e) {
    log_warning(e.what());
  }
  if (hosts.empty()) hosts = whole.hosts;
  const int each = (layout.ranks + layout.hosts - 1) / layout.hosts;
  for (auto& host : hosts)
    if (host.slots == 0) host.slots = each;
  return hosts;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string counted_hosts(size_t count) {
  return counted(static_cast<int64_t>(count), "host");
}

// The first of `hosts` that hold all ranks of `layout`.
Hosts hosts_for(const RankLayout& layout, const Hosts& hosts) {
  Hosts used;
  for (const auto& host : hosts) {
    if (ranks_on(used, layout.ranks_per_host) >= layout.ranks) break;
    used.push_back(host);
  }
  return used;
}

// `whole` on `hosts`, by a host file in the run folder.
SelfLaunch launch_on(const SelfLaunch& whole, const Hosts& hosts,
                     const HostsAsked& asked, const std::string& lost) {
  SelfLaunch launch = whole;
  const int room = std::min(whole.layout.ranks,
                            ranks_on(hosts, whole.layout.ranks_per_host));
  const RankShare before{whole.layout.ranks, asked.accumulate};
  const RankShare share = asked.batch > 0
                              ? ranks_that_share(asked.batch, before, room)
                              : RankShare{room, asked.accumulate};
  launch.layout.ranks = share.ranks;
  const Hosts used = hosts_for(launch.layout, hosts);
  launch.layout.hosts = static_cast<int>(used.size());
  const auto file = asked.run_folder / "hosts";
  std::filesystem::create_directories(asked.run_folder);
  write_atomically(file, hostfile_text(used));
  put_on_hosts(launch, used, file.string(), 0, allowed_cpus().size());
  // By itself the program would read the whole host file again.
  launch.alone = false;
  const std::string more =
      "train.accumulate=" + std::to_string(share.accumulate);
  const bool accumulates_more = share.accumulate != asked.accumulate;
  if (accumulates_more)
    launch.arguments.insert(launch.arguments.end(), {"--set", more});

  std::vector<std::string> names;
  for (const auto& host : used) names.push_back(host.name);
  const int ranks = launch.layout.ranks;
  log_warning("[launch] no answer from " + lost + ": the run goes on with " +
              std::to_string(ranks) + " of " +
              std::to_string(whole.layout.ranks) + " ranks, on " +
              names_text(names) + " (" + file.string() + ")" +
              (accumulates_more ? ", with " + more : "") +
              (ranks < room ? "; there is room for " + std::to_string(room) +
                                  ", but they cannot share the batch"
                            : ""));
  return launch;
}

}  // namespace

std::optional<SelfLaunch> on_hosts_left(const SelfLaunch& whole,
                                        const HostsAsked& asked,
                                        ParentSignals& signals) {
  if (whole.layout.hosts < 2) return whole;
  SelfLaunch now = whole;
  now.hosts = known_hosts(whole);
  if (now.hosts.size() < 2) return whole;
  constexpr double kLeast_s = 30, kMost_s = 60;
  const auto lost =
      lost_hosts(now, std::clamp(asked.timeout_s, kLeast_s, kMost_s), signals);
  if (whole.hosts.empty()) now.hosts.clear();  // mpirun asks Slurm again
  if (lost.empty() || signals.asked_to_stop()) return now;

  Hosts left = known_hosts(whole);
  std::erase_if(left, [&](const HostSlots& host) {
    return std::ranges::find(lost, host.name) != lost.end();
  });
  if (left.size() >= static_cast<size_t>(std::max(1, asked.min_hosts)))
    return launch_on(whole, left, asked, names_text(lost));
  log_error("[launch] no answer from " + names_text(lost) + ": " +
            counted_hosts(left.size()) +
            " left, launch.min_hosts=" + std::to_string(asked.min_hosts) +
            ". Hint: repair or replace them, then --resume auto");
  return std::nullopt;
}

}  // namespace chexnet
