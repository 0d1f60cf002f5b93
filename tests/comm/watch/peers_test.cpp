#include "comm/watch/peers.hpp"

#include <set>

#include "chexnet/launch/environment.hpp"
#include "support/catch.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

std::vector<Peer> on_hosts(const std::string& hosts) {  // "aab"
  std::vector<Peer> peers;
  for (const char host : hosts)
    peers.push_back({std::string(1, host), "", 0, {}});
  return peers;
}

}  // namespace

TEST_CASE("rank 0 observes, and the first rank of another host, else rank 1") {
  CHECK(choose_observers(on_hosts("a")) == std::vector<int>{0});
  CHECK(choose_observers(on_hosts("aa")) == std::vector<int>{0, 1});
  CHECK(choose_observers(on_hosts("aaaa")) == std::vector<int>{0, 1});
  CHECK(choose_observers(on_hosts("ab")) == std::vector<int>{0, 1});
  CHECK(choose_observers(on_hosts("aabbcc")) == std::vector<int>{0, 2});
  // Dealt out in turn.
  CHECK(choose_observers(on_hosts("abab")) == std::vector<int>{0, 1});
  CHECK(on_one_host(on_hosts("aaa")));
  CHECK_FALSE(on_one_host(on_hosts("aab")));
}

TEST_CASE("all ranks learn of each other, where each listens, and one secret") {
  ThreadWorld world(3);
  std::mutex mutex;
  std::set<std::string> tokens;
  world.run([&](Communicator& comm) {
    const auto rank = comm.rank();
    const auto peers = gather_peers(comm, rank == 2 ? "Tesla \xff V100" : "");
    std::vector<Endpoint> own;
    if (rank == 1) own = {{"10.0.0.1", 4711}, {"2001:db8::1", 4712}};
    const auto endpoints = gather_endpoints(comm, own);
    const std::string token = shared_token(comm), next = shared_token(comm);
    const std::lock_guard lock(mutex);
    REQUIRE(peers.size() == 3);
    CHECK(peers[0].host == host_name());
    CHECK(peers[2].local_rank == 2);
    // What is not UTF-8 harms nobody.
    CHECK(peers[2].gpu == "Tesla \xef\xbf\xbd V100");
    REQUIRE(endpoints.size() == 3);
    CHECK(endpoints[0].empty());
    REQUIRE(endpoints[1].size() == 2);
    CHECK(endpoints[1][1].address == "2001:db8::1");
    CHECK(endpoints[1][1].port == 4712);
    CHECK(token.size() > 20);
    tokens.insert({token, next});
  });
  CHECK(tokens.size() == 2);
}

TEST_CASE("on a network nobody listens where only its own host could come") {
  auto peers = on_hosts("ab");
  peers[0].addresses = {"10.200.0.1"};
  // The other host has no address.
  CHECK(addresses_to_listen_on(peers, 0).empty());
  peers[1].addresses = {"10.200.0.1"};
  // The same one: a bridge, or two containers of one machine.
  CHECK(addresses_to_listen_on(peers, 0) ==
        std::vector<std::string>{"127.0.0.1"});
}
