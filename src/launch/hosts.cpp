#include "chexnet/launch/hosts.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <system_error>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

std::string without_domain(const std::string& name) {
  return name.substr(0, name.find('.'));
}

// Of a link (`fe80::1%eth0`), too.
bool is_ipv6(const std::string& name) {
  in6_addr address{};
  return inet_pton(AF_INET6, name.substr(0, name.find('%')).c_str(),
                   &address) == 1;
}

// In lists of mpirun and of batch systems all other characters mean something,
// and what begins with a hyphen is an option.
bool may_name_a_host(const std::string& name) {
  constexpr std::string_view kMore = ".-_";
  return !name.empty() && !name.starts_with('-') &&
         std::ranges::all_of(name, [&](unsigned char c) {
           return std::isalnum(c) != 0 || kMore.find(char(c)) != kMore.npos;
         });
}

// Only this host's addresses can be bound.
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

std::string HostTally::add(const std::string& name, int slots) {
  // Open MPI 4.1 and Hydra end without a word about it.
  if (is_ipv6(name))
    return "'" + name +
           "' is an address of IPv6, which mpirun takes for no host: give it "
           "a name, as in /etc/hosts";
  if (!may_name_a_host(name)) return "'" + name + "' is no name of a host";
  if (slots > kMostSlots - slots_)
    return formatted("'{}' has too many slots: more than {} together", name,
                     kMostSlots);
  slots_ += slots;
  const auto [known, added] = place_of_.try_emplace(name, hosts_.size());
  if (added)
    hosts_.push_back({name, slots});
  else
    hosts_[known->second].slots += slots;
  return "";
}

std::string hostfile_name(const std::filesystem::path& path,
                          const std::string& variable) {
  return variable.empty() ? path.string() : variable + "=" + path.string();
}

std::string hostfile_content(const std::filesystem::path& path,
                             const std::string& variable) {
  constexpr size_t kLargest = size_t{64} << 20;
  const auto refuse = [&](const std::string& problem) {
    throw ConfigError(
        "[launch] {}: {}. Hint: a host file has a line for each host, e.g. "
        "`node1 slots=4`",
        hostfile_name(path, variable), problem);
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  // Also what a person gives on purpose: mpirun would read it a second time.
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status))
    refuse("is no regular file");
  FileStart start;
  try {
    start = read_start(path.string(), kLargest);
  } catch (const AbsentError&) {
    refuse("cannot be read");
  }
  if (start.size > kLargest) refuse("is larger than 64 MiB");
  const std::string text(reinterpret_cast<const char*>(start.bytes.data()),
                         start.bytes.size());
  return std::string(without_byte_order_mark(text));
}

// Three forms in one: `node1 slots=4` of Open MPI, `node1:4` of MPICH, and
// PBS's, which repeats a host once for each slot.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& path,
                                     const std::string& variable) {
  std::istringstream file(hostfile_content(path, variable));
  const std::string file_name = hostfile_name(path, variable);
  HostTally tally;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, word;
    if (!(words >> name)) continue;
    int slots = 1;
    const auto bad = [&](const std::string& what) {
      return ConfigError(
          "[launch] {}:{}: {}. Hint: `node1 slots=4`, or `node1` once for each "
          "rank",
          file_name, number, what);
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
    while (words >> word) {
      if (word.starts_with("slots=")) {
        slots = count(word.substr(6));
      } else if (!word.starts_with("max_slots=") &&
                 !word.starts_with("max-slots=")) {
        throw bad("'" + word + "' is not known");
      }
    }
    if (const auto problem = tally.add(name, slots); !problem.empty())
      throw bad(problem);
  }
  auto hosts = tally.take();
  if (hosts.empty())
    throw ConfigError("[launch] {}: names no host. Hint: a line for each host",
                      file_name);
  return hosts;
}

}  // namespace chexnet
