// Times: seconds as doubles.
#pragma once

#include <string>

namespace chexnet {

// Steady clock, since an arbitrary start, the same for all processes of a host.
double now_s();
double system_time_s();  // since 1970, by the system's clock
std::string utc_time();  // 2026-11-21T09:00:00Z

}  // namespace chexnet
