// What every rank of a run sends once to all others, and which ranks observe
// them.
#pragma once

#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "line_socket.hpp"

namespace chexnet {

struct Peer {
  std::string host, gpu;
  int local_rank = 0;
  std::vector<std::string> addresses;  // of its host
};

// Collective: all ranks' [rank].
std::vector<Peer> gather_peers(Communicator& comm, const std::string& gpu);

// Rank 0, and the first rank of another host, else rank 1: the ranks that look
// for a failure.
std::vector<int> choose_observers(const std::vector<Peer>& peers);
bool on_one_host(const std::vector<Peer>& peers);

// Addresses of `rank`'s host that lead to the other hosts, without those that
// another host has, too.
std::vector<std::string> addresses_to_listen_on(const std::vector<Peer>& peers,
                                                int rank);

// Collective: where each rank listens [rank].
std::vector<std::vector<Endpoint>> gather_endpoints(
    Communicator& comm, const std::vector<Endpoint>& own);

// Equal on all ranks; nobody else can guess it.
std::string shared_token(Communicator& comm);

}  // namespace chexnet
