// An observer's side of the watchdog's reports over TCP: listens, takes lines
// from who knows the run's token, and answers. Nothing that strangers send can
// keep its caller: they may send one line within two seconds, they are few at a
// time, and a call ends when its time is over. A connection that sends what is
// no report ends.
#pragma once

#include <string>
#include <vector>

#include "line_socket.hpp"
#include "transport.hpp"

namespace chexnet {

class ReportReceiver final : public ReportInbox {
 public:
  // A connection's time to say the token.
  static constexpr double kGreeting_s = 2;
  // Connections, known and unknown each.
  static constexpr size_t kMostOfAddress = 8;
  static constexpr size_t kMostStrangers = 64;

  // Listens on each of `addresses` of this host.
  ReportReceiver(const std::vector<std::string>& addresses, std::string token);
  ReportReceiver(ReportReceiver&&) = default;

  std::vector<Endpoint> endpoints() const;
  // Descriptors to poll for reading.
  std::vector<int> descriptors(double now_s) const;
  void take(double now_s, const Use& use) override;
  void tell_all(const std::string& line) override;
  size_t connections() const { return known_.size() + strangers_.size(); }

 private:
  struct Connection {
    LineSocket socket;
    double since_s;
  };
  void accept(double now_s);
  void hear_strangers(double now_s, const Use& use);
  void hear_known(const Use& use);

  std::string token_;
  std::vector<LineListener> listeners_;
  std::vector<Connection> strangers_, known_;  // oldest first
  double accepts_from_s_ = 0;  // after the process ran out of descriptors
  size_t next_ = 0;            // of known_, to be heard
};

}  // namespace chexnet
