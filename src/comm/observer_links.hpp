// A host's connections to the observers of the watchdog: reports go out, verdicts come back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/halt.hpp"
#include "line_socket.hpp"

namespace chexnet {

// Messages are JSON lines. `token` keeps strangers' connections out.
std::string report_line(const std::string& token, const std::vector<RankView>& ranks);
// Puts a report's ranks into `views` [rank] and returns their numbers; nothing for what no rank of
// this run sent.
std::optional<std::vector<int>> read_report(const std::string& line, const std::string& token,
                                            std::vector<RankView>& views);
std::string answer_line(int verdict);  // 0: none

class ObserverLinks {
 public:
  // `addresses` of the observer's host, tried in turn.
  void add(std::vector<std::string> addresses, int port);
  bool empty() const { return links_.empty(); }
  // Begins to wait anew for answers.
  void forgive();
  // Sends `report` to every observer and reads their answers; the verdict of one, else 0.
  int exchange(const std::string& report);
  // Any observer answered within `silence_s`.
  bool heard(double silence_s) const;

 private:
  struct Link {
    std::vector<std::string> addresses;
    int port = 0;
    std::optional<LineSocket> socket{};
    double tried_s = -1e9, answered_s = 0;  // steady clock
    std::size_t attempts = 0;
  };
  std::vector<Link> links_;
};

}  // namespace chexnet
