// On which hosts ranks are started again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

// What a run needs of the hosts that are left.
struct HostsAsked {
  std::filesystem::path run_folder;  // gets the host file
  // The ranks share it (launch/lost_hosts.hpp); 0: any number of them can.
  int64_t batch = 0;
  int64_t accumulate = 1;  // train.accumulate
  int min_hosts = 1;       // launch.min_hosts
  double timeout_s = 0;
};

// `whole` is the launch of all hosts. Asks its hosts, those of its host file as
// it is now; where some do not answer within the timeout (at least 30 s, at
// most 60), the launch on the others, and a line in the log that names both.
// Nothing, and an error in the log, where fewer than launch.min_hosts are left.
// Launches on one host are not changed.
std::optional<SelfLaunch> on_hosts_left(const SelfLaunch& whole,
                                        const HostsAsked& asked,
                                        ParentSignals& signals);

}  // namespace chexnet
