// A host's connections to the observers of the watchdog: reports go out, answers come back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/watch/failure_detector.hpp"
#include "line_socket.hpp"
#include "report_receiver.hpp"

namespace chexnet {

// Messages are JSON lines.
std::string report_line(const std::vector<RankView>& ranks);
// Puts a report's ranks into `views` [rank] and returns their numbers; nothing, and `views` as they
// were, for what is no report.
std::optional<std::vector<int>> read_report(const std::string& line, std::vector<RankView>& views);
// `end_code`: with which the ranks must end; 0: none.
std::string answer_line(const std::string& token, int end_code);
// The code of an answer; nothing for what no observer of this run sent.
std::optional<int> read_answer(const std::string& line, const std::string& token);

class ObserverLinks {
 public:
  void set_tokens(RunTokens tokens) { tokens_ = std::move(tokens); }
  // The `endpoints` of an observer are tried in turn.
  void add(std::vector<Endpoint> endpoints);
  bool empty() const { return links_.empty(); }
  // Begins to wait anew for answers.
  void restart_timeouts();
  // Sends `report` to every observer and reads their answers; the end code of one, else 0.
  int exchange(const std::string& report);
  // Any observer answered within `silence_s`.
  bool heard(double silence_s) const;

 private:
  struct Link {
    std::vector<Endpoint> endpoints;
    std::optional<LineSocket> socket{};
    double tried_s = -1e9, answered_s = 0;  // steady clock
    std::size_t attempts = 0;
  };
  void connect(Link& link);
  int read_answers(Link& link, const std::vector<std::string>& lines);

  RunTokens tokens_;
  std::vector<Link> links_;
};

}  // namespace chexnet
