// Host files of three kinds.
#include <arpa/inet.h>

#include "chexnet/launch/hosts.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile file;
  std::vector<HostSlots> hosts;
  const std::string path = file.holding(bytes);
  if (!accepted<ConfigError>([&] { hosts = read_hostfile(path); })) return;
  require(!hosts.empty(), "a host file names a host");
  std::string text;
  for (const auto& host : hosts) {
    require(host.slots >= 1, "a host has a slot");
    if (in_addr address{}; inet_pton(AF_INET, host.name.c_str(), &address) == 1)
      require(is_this_host(host.name) || !host.name.starts_with("127."),
              "a loopback address is this host's");  // no name: no query
    text += host.name + " slots=" + std::to_string(host.slots) + "\n";
  }
  const std::string list = host_list(hosts, 8, 0);
  require(
      std::ranges::count(list, ',') + 1 == static_cast<ptrdiff_t>(hosts.size()),
      "mpirun is given as many hosts");
  const auto again =
      read_hostfile(file.holding(std::as_bytes(std::span(text))));
  require(again.size() == hosts.size(), "each host is named once");
  for (size_t i = 0; i < hosts.size(); ++i)
    require(again[i].name == hosts[i].name && again[i].slots == hosts[i].slots,
            "a host file that is written reads back equal");
}

std::vector<std::string> seeds() {
  return {"node1 slots=4 max_slots=8\nnode2:2 # two\n\n", "a\na\nb\n",
          "127.0.0.1\n192.0.2.1\n",
          "10.0.0.1:16\nfd00::2 slots=2\nnode3 max-slots=2 slots=2\n"};
}

const Registered kTarget{{"host_file", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
