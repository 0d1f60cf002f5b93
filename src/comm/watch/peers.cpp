#include "peers.hpp"

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {

using nlohmann::json;

std::vector<Peer> gather_peers(Communicator& comm, const std::string& gpu) {
  const json mine = {{"host", host_name()},
                     {"gpu", gpu},
                     {"local_rank", comm.world().local_rank},
                     {"addresses", own_addresses()}};
  std::vector<Peer> peers;
  for (const auto& peer : gather_json(comm, mine))
    peers.push_back({peer["host"], peer["gpu"], peer["local_rank"],
                     peer["addresses"].get<std::vector<std::string>>()});
  return peers;
}

bool on_one_host(const std::vector<Peer>& peers) {
  assert(!peers.empty());
  return std::ranges::all_of(
      peers, [&](const Peer& p) { return p.host == peers.front().host; });
}

std::vector<int> choose_observers(const std::vector<Peer>& peers) {
  assert(!peers.empty());
  if (peers.size() == 1) return {0};
  const auto other = std::ranges::find_if(
      peers, [&](const Peer& peer) { return peer.host != peers.front().host; });
  return {0,
          other == peers.end() ? 1 : static_cast<int>(other - peers.begin())};
}

// Bound to single addresses, never to all of them: a port that the rest of the
// world can reach is one more thing to defend.
std::vector<std::string> addresses_to_listen_on(const std::vector<Peer>& peers,
                                                int rank) {
  assert(rank >= 0 && rank < static_cast<int>(peers.size()));
  const Peer& own = peers[static_cast<size_t>(rank)];
  std::set<std::string> ways;
  bool shares_network = false;
  std::vector<std::string> ours = own.addresses;
  for (const auto& peer : peers) {
    if (peer.host == own.host) continue;
    const auto only_theirs = without_own(peer.addresses, own.addresses);
    if (only_theirs.empty() && !peer.addresses.empty()) shares_network = true;
    ours = without_own(ours, peer.addresses);
    for (const auto& address : only_theirs)
      if (const auto way = address_towards(address)) ways.insert(*way);
  }
  std::erase_if(ours, [&](const std::string& address) {
    return !ways.contains(address);
  });
  // Containers of one machine may have different names and one network.
  if (shares_network) ours.emplace_back("127.0.0.1");
  return ours;
}

std::vector<std::vector<Endpoint>> gather_endpoints(
    Communicator& comm, const std::vector<Endpoint>& own) {
  json mine = json::array();
  for (const auto& endpoint : own)
    mine.push_back({{"address", endpoint.address}, {"port", endpoint.port}});
  std::vector<std::vector<Endpoint>> all;
  for (const auto& endpoints : gather_json(comm, mine)) {
    auto& of_rank = all.emplace_back();
    for (const auto& endpoint : endpoints)
      of_rank.push_back({endpoint["address"], endpoint["port"]});
  }
  return all;
}

std::string shared_token(Communicator& comm) {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += std::to_string(random()) + "-";
  return broadcast_text(comm, token);
}

}  // namespace chexnet
