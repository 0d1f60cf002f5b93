#include "metric_lines.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace chexnet {
namespace {

using nlohmann::json;

// Of steps, images, ranks: fits wherever it is added up.
constexpr double kLargestCount = 1e12;

bool is_count(const json& value) {
  return value.is_number() && std::abs(value.get<double>()) < kLargestCount;
}

bool is_figure(const json& value) {
  return value.is_number() || value.is_null();
}

struct FieldType {
  std::string_view name;
  bool (*fits)(const json&);
};

// The fields that are read again. Readers of an event may rely on these types
// without a check: a run folder may come from somebody else, and a wrong type
// would throw far from its line.
constexpr FieldType kFields[] = {
    {"event", [](const json& v) { return v.is_string(); }},
    {"host", [](const json& v) { return v.is_string(); }},
    {"job", [](const json& v) { return v.is_string(); }},
    {"best", [](const json& v) { return v.is_string(); }},
    {"cause", [](const json& v) { return v.is_string(); }},
    {"split", [](const json& v) { return v.is_string(); }},
    {"mean_is_rough", [](const json& v) { return v.is_string(); }},
    {"validation_sha256", [](const json& v) { return v.is_string(); }},
    {"sentence", [](const json& v) { return v.is_string(); }},
    {"step", is_count},
    {"steps", is_count},
    {"total_steps", is_count},
    {"epoch", is_count},
    {"ranks", is_count},
    {"rank", is_count},
    {"images", is_count},
    {"data_stalls", is_count},
    {"exit_code", is_count},
    {"findings_in_mean", [](const json& v) { return v.is_number_unsigned(); }},
    {"loss", is_figure},
    {"mean_auroc", is_figure},
    {"mean_auroc_low", is_figure},
    {"mean_auroc_high", is_figure},
    {"images_per_s", is_figure},
    {"data_wait_s", is_figure},
    {"allreduce_wait_s", is_figure},
    {"job_seconds_left", is_figure},
    {"own_ms_per_step", [](const json& v) { return v.is_object(); }}};

bool is_event(const json& line) {
  if (!line.is_object()) return false;
  return std::ranges::all_of(kFields, [&](const FieldType& field) {
    const auto found = line.find(field.name);
    return found == line.end() || field.fits(*found);
  });
}

}  // namespace

int64_t for_each_event(
    const std::string& text,
    const std::function<void(const json&, const std::string&)>& use) {
  int64_t passed_over = 0;
  for (size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    if (end == std::string::npos) break;
    const std::string line = text.substr(at, end + 1 - at);
    at = end + 1;
    const json event = json::parse(line, nullptr, false);
    if (is_event(event))
      use(event, line);
    else
      ++passed_over;
  }
  return passed_over;
}

}  // namespace chexnet
