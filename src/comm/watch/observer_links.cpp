#include "observer_links.hpp"

#include <cassert>
#include <utility>

namespace chexnet {

ObserverLinks::ObserverLinks(std::string greeting, SteadyClock clock)
    : greeting_(std::move(greeting)), clock_(std::move(clock)) {}

void ObserverLinks::add(std::vector<Endpoint> endpoints) {
  links_.emplace_back().endpoints = std::move(endpoints);
}

// A host may have several networks, not all of which lead to the observer: each
// attempt takes its next address, and at most one is made a second.
void ObserverLinks::connect(Link& link) {
  if (link.endpoints.empty() || clock_() - link.tried_s <= kConnectEvery_s)
    return;
  const Endpoint& to = link.endpoints[link.attempts++ % link.endpoints.size()];
  link.socket = LineSocket::connect(to, greeting_);
  link.tried_s = clock_();
}

std::vector<std::string> ObserverLinks::exchange(size_t observer,
                                                 const std::string& report) {
  assert(observer < links_.size());
  assert(report.find('\n') == std::string::npos);
  Link& link = links_[observer];
  if (!link.socket) connect(link);
  if (!link.socket) return {};

  auto answers = link.socket->receive();
  if (!answers || !link.socket->send(report)) link.socket.reset();
  return std::move(answers).value_or(std::vector<std::string>{});
}

void ObserverLinks::reconnect(size_t observer) {
  assert(observer < links_.size());
  Link& link = links_[observer];
  if (clock_() - link.tried_s > 2 * kConnectEvery_s) link.socket.reset();
}

}  // namespace chexnet
