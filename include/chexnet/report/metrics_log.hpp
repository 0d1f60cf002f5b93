// metrics.jsonl: one JSON object a line, each with "event" and "step"; and the same scalars for
// TensorBoard. Rank 0 only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace chexnet {

using MetricValue = std::variant<double, std::int64_t, std::string,
                                 std::map<std::string, double>>;  // NaN becomes null
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;

class MetricsLog {
 public:
  // Appends to `folder`/metrics.jsonl. Lines past `resume_step` (of a run that went on after its
  // last checkpoint) are cut off first; -1 keeps all.
  MetricsLog(const std::filesystem::path& folder, std::int64_t resume_step);
  ~MetricsLog();
  void write(const std::string& event, std::int64_t step, const MetricFields& fields);

 private:
  void tensorboard_record(const std::string& bytes);
  std::ofstream lines_, events_;
};

}  // namespace chexnet
