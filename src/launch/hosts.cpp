#include "chexnet/launch/hosts.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

// Of one host. Sums of two stay within an int.
constexpr int kMostSlots = 1 << 20;

std::string without_domain(const std::string& name) {
  return name.substr(0, name.find('.'));
}

// Without brackets, as Open MPI reads it; of a link (`fe80::1%eth0`), too.
bool is_ipv6(const std::string& name) {
  in6_addr address{};
  return inet_pton(AF_INET6, name.substr(0, name.find('%')).c_str(),
                   &address) == 1;
}

// Commas and colons part the hosts of mpirun's --host.
bool may_name_a_host(const std::string& name) {
  return !name.empty() && std::ranges::none_of(name, [](unsigned char c) {
    return c <= ' ' || c == 0x7f || c == ',';
  });
}

// Only an own address can be bound.
bool is_own(const addrinfo& address) {
  const int probe = socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool own = bind(probe, address.ai_addr, address.ai_addrlen) == 0;
  close(probe);
  return own;
}

}  // namespace

// By name first, which asks no server, then by address: host files hold
// addresses and second names too. A number has no domain to be cut off.
bool is_this_host(const std::string& name) {
  const bool number =
      name.find_first_not_of("0123456789.") == std::string::npos;
  if (!number && (name == "localhost" ||
                  without_domain(name) == without_domain(host_name())))
    return true;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return false;
  bool own = false;
  for (const addrinfo* at = found; at != nullptr && !own; at = at->ai_next)
    own = is_own(*at);
  freeaddrinfo(found);
  return own;
}

std::string host_list(const std::vector<HostSlots>& hosts, int ranks,
                      int ranks_per_host) {
  const auto count = static_cast<int>(hosts.size());
  const int most =
      ranks_per_host > 0 ? ranks_per_host : (ranks + count - 1) / count;
  std::string list;
  for (const auto& host : hosts) {
    const bool counted = host.slots > 0 && ranks_per_host == 0;
    const int slots = counted ? host.slots : std::max(host.slots, most);
    list += (list.empty() ? "" : ",") + host.name + ":" + std::to_string(slots);
  }
  return list;
}

// Three forms in one: `node1 slots=4` of Open MPI, `node1:4` of MPICH, and
// PBS's, which repeats a host once for each slot.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file)
    throw ConfigError(
        "[launch] " + path.string() +
        ": cannot be read. Hint: a host file has a line for each host, "
        "e.g. `node1 slots=4`");
  std::vector<HostSlots> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, word;
    if (!(words >> name)) continue;
    int slots = 1;
    const auto bad = [&](const std::string& what) {
      return ConfigError(
          "[launch] " + path.string() + ":" + std::to_string(number) + ": " +
          what + ". Hint: `node1 slots=4`, or `node1` once for each rank");
    };
    const auto count = [&](const std::string& text) {
      const auto value = parsed_number<int>(text);
      if (!value || *value < 1 || *value > kMostSlots)
        throw bad("'" + text + "' is no number of slots");
      return *value;
    };
    if (const auto colon = name.find(':');
        colon != std::string::npos && !is_ipv6(name)) {
      slots = count(name.substr(colon + 1));
      name.resize(colon);
    }
    if (!may_name_a_host(name))
      throw bad("'" + name + "' is no name of a host");
    while (words >> word) {
      if (word.starts_with("slots=")) {
        slots = count(word.substr(6));
      } else if (!word.starts_with("max_slots=") &&
                 !word.starts_with("max-slots=")) {
        throw bad("'" + word + "' is not known");
      }
    }
    const auto known = std::ranges::find(hosts, name, &HostSlots::name);
    if (known == hosts.end())
      hosts.push_back({name, slots});
    else if ((known->slots += slots) > kMostSlots)
      throw bad("'" + name + "' has too many slots");
  }
  if (hosts.empty())
    throw ConfigError("[launch] " + path.string() +
                      ": names no host. Hint: a line for each host");
  return hosts;
}

}  // namespace chexnet
