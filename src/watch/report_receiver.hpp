// An observer's side of the watchdog's reports: listens, takes lines from who knows the run's
// token, and answers. Nothing that strangers send can keep its caller: they may say one line within
// two seconds, they are few at a time, and a look ends when its time is over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "line_socket.hpp"

namespace chexnet {

// What ranks of one run know, and nobody else. Two, so that an outsider who gets one (by a rank
// that reached him for its observer) cannot answer for an observer.
struct RunTokens {
  std::string report, answer;
};

class ReportReceiver {
 public:
  static constexpr double kGreeting_s = 2;          // a connection's time to say the token
  static constexpr std::size_t kMostOfAddress = 8;  // connections, known and unknown each
  static constexpr std::size_t kMostStrangers = 64;

  // Listens on each of `addresses` of this host.
  ReportReceiver(const std::vector<std::string>& addresses, std::string token);
  ReportReceiver(ReportReceiver&&) = default;

  std::vector<Endpoint> endpoints() const;
  // Descriptors to poll for reading.
  std::vector<int> descriptors(double now_s) const;
  // Takes what has come. `use` gets each report and gives the answer to it; empty: this is no
  // report, and the connection ends.
  void take(double now_s, const std::function<std::string(const std::string&)>& use);
  // The same line to all who report.
  void tell_all(const std::string& line);
  std::size_t connections() const { return known_.size() + strangers_.size(); }

 private:
  struct Connection {
    LineSocket socket;
    double since_s;
  };
  void accept(double now_s);
  void hear_strangers(double now_s, const std::function<std::string(const std::string&)>& use);
  void hear_known(const std::function<std::string(const std::string&)>& use);

  std::string token_;
  std::vector<LineListener> listeners_;
  std::vector<Connection> strangers_, known_;  // oldest first
  double accepts_from_s_ = 0;                  // after the process ran out of descriptors
  std::size_t next_ = 0;                       // of known_, to be heard
};

}  // namespace chexnet
