// A host's TCP connections to the observers of the watchdog.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "line_socket.hpp"
#include "transport.hpp"

namespace chexnet {

class ObserverLinks final : public ReportChannel {
 public:
  static constexpr double kConnectEvery_s = 1;

  // `greeting`: the first line of each connection, by which the observer knows
  // this run.
  ObserverLinks(std::string greeting, SteadyClock clock);
  // An observer, whose `endpoints` are tried in turn. Before the first
  // exchange.
  void add(std::vector<Endpoint> endpoints);

  size_t observers() const override { return links_.size(); }
  std::vector<std::string> exchange(size_t observer,
                                    const std::string& report) override;
  void reconnect(size_t observer) override;

 private:
  struct Link {
    std::vector<Endpoint> endpoints;
    std::optional<LineSocket> socket{};
    double tried_s = -1e9;  // steady clock
    size_t attempts = 0;
  };
  void connect(Link& link);

  std::string greeting_;
  SteadyClock clock_;
  std::vector<Link> links_;
};

}  // namespace chexnet
