#include "chexnet/launch/open_ports.hpp"

#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "chexnet/core/parsed_number.hpp"

namespace chexnet {
namespace {

int socket_option(int socket, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool is_open_port(int socket) {
  const int domain = socket_option(socket, SO_DOMAIN);
  return (domain == AF_INET || domain == AF_INET6) &&
         socket_option(socket, SO_ACCEPTCONN) == 1;
}

void each_descriptor(pid_t process, const std::function<void(int)>& visit) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator it("/proc/" + std::to_string(process) + "/fd", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    if (const auto fd = parsed_number<int>(it->path().filename().string()))
      visit(*fd);
}

// Of another process.
void each_port_of(pid_t owner, const std::function<void(int)>& visit) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, owner, 0U));
  if (process < 0) return;
  each_descriptor(owner, [&](int descriptor) {
    const auto socket =
        static_cast<int>(syscall(SYS_pidfd_getfd, process, descriptor, 0U));
    if (socket < 0) return;
    if (is_open_port(socket)) visit(socket);
    close(socket);
  });
  close(process);
}

constexpr uint32_t from_network(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

// A program of the kernel's packet filter (`man 7 socket`, SO_ATTACH_FILTER).
// The packet begins with its TCP header.
class Filter {
 public:
  // `admitted`: those of IPv4 stand first.
  explicit Filter(const std::vector<HostAddress>& admitted) {
    // Tests only packets that open a connection.
    constexpr uint32_t kFlags = 13;
    add(BPF_LD | BPF_B | BPF_ABS, kFlags);
    add(BPF_JMP | BPF_JSET | BPF_K, TH_SYN, 1);
    add(BPF_RET | BPF_K, kWhole);

    constexpr uint32_t kVersion6 = 0x60;
    add(BPF_LD | BPF_B | BPF_ABS, ip_header(0));
    add(BPF_ALU | BPF_AND | BPF_K, 0xf0);
    add(BPF_JMP | BPF_JEQ | BPF_K, kVersion6, 0, 1);
    const size_t to_ipv6 = program_.size();
    add(BPF_JMP | BPF_JA, 0);
    const auto ipv6 = std::ranges::find(admitted, 16, &HostAddress::size);
    for (auto it = admitted.begin(); it != ipv6; ++it) add_address(*it);
    add(BPF_RET | BPF_K, 0);
    program_[to_ipv6].k = static_cast<uint32_t>(program_.size() - to_ipv6 - 1);
    for (auto it = ipv6; it != admitted.end(); ++it) add_address(*it);
    add(BPF_RET | BPF_K, 0);
  }

  void attach(int socket) {
    // A longer one is refused, and the port stays as it is.
    if (program_.size() > BPF_MAXINSNS) return;
    const sock_fprog program{static_cast<unsigned short>(program_.size()),
                             program_.data()};
    setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  }

 private:
  static constexpr uint32_t kWhole = UINT32_MAX;

  void add(int code, uint32_t value, uint8_t if_true = 0,
           uint8_t if_false = 0) {
    program_.push_back({static_cast<uint16_t>(code), if_true, if_false, value});
  }

  // Admits a packet from there, and else goes on after these lines.
  void add_address(const HostAddress& address) {
    constexpr uint32_t kSourceIpv4 = 12, kSourceIpv6 = 8;  // in the IP header
    const uint32_t source = address.size == 4 ? kSourceIpv4 : kSourceIpv6;
    for (uint32_t at = 0; at < address.size; at += 4) {
      const uint32_t words_behind = (address.size - at) / 4 - 1;
      add(BPF_LD | BPF_W | BPF_ABS, ip_header(source + at));
      add(BPF_JMP | BPF_JEQ | BPF_K, from_network(&address.bytes[at]), 0,
          static_cast<uint8_t>(2 * words_behind + 1));
    }
    add(BPF_RET | BPF_K, kWhole);
  }

  static uint32_t ip_header(uint32_t offset) {
    return static_cast<uint32_t>(SKF_NET_OFF) + offset;
  }

  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<HostAddress> own_host_addresses() {
  std::vector<HostAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    HostAddress& address = found.emplace_back();
    const void* bytes = nullptr;
    if (entry->ifa_addr->sa_family == AF_INET) {
      address.size = sizeof(in_addr);
      bytes = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      address.size = sizeof(in6_addr);
      bytes =
          &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    } else {
      found.pop_back();
      continue;
    }
    std::memcpy(address.bytes.data(), bytes, address.size);
  }
  freeifaddrs(list);
  return found;
}

void bind_ports_to_loopback(pid_t launcher) {
  each_port_of(launcher, [](int socket) {
    static constexpr char kLoopback[] = "lo";
    setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, kLoopback,
               sizeof kLoopback);
  });
}

void admit_only(std::vector<HostAddress> addresses,
                const std::vector<pid_t>& launchers) {
  const auto key = [](const HostAddress& address) {
    return std::pair(address.size, address.bytes);
  };
  std::ranges::sort(addresses, {}, key);
  const auto same = [&](const HostAddress& a, const HostAddress& b) {
    return key(a) == key(b);
  };
  addresses.erase(std::unique(addresses.begin(), addresses.end(), same),
                  addresses.end());
  Filter filter(addresses);
  const auto attach = [&](int socket) { filter.attach(socket); };
  each_descriptor(getpid(), [&](int descriptor) {
    if (is_open_port(descriptor)) attach(descriptor);
  });
  for (const pid_t launcher : launchers) each_port_of(launcher, attach);
}

}  // namespace chexnet
