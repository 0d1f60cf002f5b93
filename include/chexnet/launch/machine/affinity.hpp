// The cores this process may use.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// CPUs the calling process may use, as the kernel says.
std::vector<int> allowed_cpus();
// Moves every thread of this process, and returns what the kernel then says of
// the calling one (it may refuse). Memory follows: pages are on the node of the
// core that first touches them.
std::vector<int> bind_process(const std::vector<int>& cpus);

// "0-3,8" for people.
std::string cpu_list_text(const std::vector<int>& cpus);

}  // namespace chexnet
