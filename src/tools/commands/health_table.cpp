// The rows travel between ranks as JSON and are printed as text, so reading
// must give back what writing took: checks_of(json_of(x)) is x.
#include "health_table.hpp"

#include <algorithm>

namespace chexnet {

std::string text_of(const std::vector<CheckResult>& checks) {
  size_t width = 0;
  for (const auto& f : checks) width = std::max(width, f.name.size());
  std::string text;
  for (const auto& f : checks) {
    text += std::string(level_name(f.level)) + "  " + f.name +
            std::string(width - f.name.size() + 2, ' ') + f.text + "\n";
    if (!f.advice.empty())
      text += std::string(width + 8, ' ') + "-> " + f.advice + "\n";
  }
  return text;
}

Json json_of(const std::vector<CheckResult>& checks) {
  Json list = Json::array();
  for (const auto& f : checks)
    list.push_back({{"level", level_name(f.level)},
                    {"name", f.name},
                    {"text", f.text},
                    {"advice", f.advice}});
  return list;
}
std::vector<CheckResult> checks_of(const Json& list) {
  std::vector<CheckResult> checks;
  for (const auto& f : list)
    for (const Level level :
         {Level::kPass, Level::kWarn, Level::kFail, Level::kSkip})
      if (f["level"] == level_name(level))
        checks.push_back({level, f["name"], f["text"], f["advice"]});
  return checks;
}

}  // namespace chexnet
