// Who may connect to the TCP ports that MPI and its launcher listen on. Both
// listen on all interfaces, whichever they are told to use, and wait without
// end for the rest of a greeting that a stranger begins. Where the kernel or a
// container does not allow these calls, the ports stay as they are.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <vector>

namespace chexnet {

// In network order; IPv4 fills the first four bytes.
struct HostAddress {
  uint8_t size = 0;  // 4 or 16
  std::array<uint8_t, 16> bytes{};
};
// Of all interfaces, the loopback's too.
std::vector<HostAddress> own_host_addresses();

// The ports of `launcher`, below or above this process, are reached from this
// host alone from here on (Linux 5.7). Above it is only where the kernel lets a
// process trace others of its user (Yama's ptrace_scope 0).
void bind_ports_to_loopback(pid_t launcher);

// The ports that this process and `launchers` (as above) listen on now are
// reached from `addresses` alone: the kernel drops the first packet of any
// other connection.
void admit_only(std::vector<HostAddress> addresses,
                const std::vector<pid_t>& launchers);

}  // namespace chexnet
