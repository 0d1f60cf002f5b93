// The two messages of the watchdog, one JSON line each. What does not come from
// this run, or makes no sense, is no message.
//
//   report  {"ranks":[{"rank":3,"pid":4711,"phase":4,"gone":false,
//                      "heartbeat_s":0.04,"phase_s":1.2,"sequence":812,
//                      "step":40},…]}   and "stopped":true where it is
//   answer  {"token":"…","end":0}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/watch/failure_detector.hpp"

namespace chexnet {

// Secrets of one run's ranks. Two, so that an outsider who gets one (from a
// rank that took him for its observer) cannot answer for an observer.
struct RunTokens {
  std::string report, answer;
};

// Ages are rounded to milliseconds, so that 500 ranks of a host fit a line.
std::string report_line(const std::vector<RankView>& ranks);
// Puts a report's ranks into `views` [rank] and returns their numbers; nothing,
// and `views` as they were, for what is no report. Host and GPU of a view stay.
std::optional<std::vector<int>> read_report(const std::string& line,
                                            std::vector<RankView>& views);

// `end_code`: with which the ranks must end; 0: none.
std::string answer_line(const std::string& token, int end_code);
// The code of an answer; nothing for what no observer of this run sent.
std::optional<int> read_answer(const std::string& line,
                               const std::string& token);

}  // namespace chexnet
