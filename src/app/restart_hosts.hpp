// On which hosts ranks are started again.
#pragma once

#include <optional>

#include "chexnet/app/enter_world.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

// `whole` is the launch that was asked for. Asks its hosts, those of its host
// file as it is now; where some do not answer within `timeout_s` (at least 30
// s, at most 60), the launch on the others, and a line in the log that names
// both. Nothing, and an error in the log, where fewer than launch.min_hosts are
// left. Launches on one host are not changed.
std::optional<SelfLaunch> on_hosts_left(const SelfLaunch& whole,
                                        const ParentTask& task,
                                        double timeout_s,
                                        ParentSignals& signals);

}  // namespace chexnet
