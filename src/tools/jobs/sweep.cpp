// The product of all lists: each list multiplies the points so far, so the last
// varies fastest, and seeds faster still. A point's folder is named by its
// values, e.g. lr=1e-3_batch=32_seed=1.
#include <algorithm>
#include <set>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {
namespace {

// A value with slashes, as in data.fold=1/5, is one part of a path.
std::string in_a_file_name(std::string value) {
  std::ranges::replace(value, '/', '-');
  return value;
}

}  // namespace

std::vector<SweepPoint> sweep_points(const std::vector<std::string>& lists,
                                     int seeds,
                                     const std::filesystem::path& folder) {
  std::vector<SweepPoint> points = {{"", {}}};
  std::set<std::string> swept;
  const auto multiply = [&](const std::string& key,
                            const std::vector<std::string>& values) {
    // The later value would win, under a name with both.
    if (!swept.insert(key).second)
      throw ConfigError(
          "[submit] --sweep: {} is swept twice (--seeds sweeps run.seed). "
          "Hint: name all its values in one --sweep",
          key);
    const std::string short_key = key.substr(key.rfind('.') + 1);
    std::vector<SweepPoint> next;
    for (const auto& point : points)
      for (const auto& value : values) {
        SweepPoint& more = next.emplace_back(point);
        more.assignments.push_back(key + "=" + value);
        more.run_folder += (more.run_folder.empty() ? "" : "_") + short_key +
                           "=" + in_a_file_name(value);
      }
    points = std::move(next);
  };
  for (const auto& list : lists) {
    const auto equals = list.find('=');
    const std::string key = list.substr(0, equals);
    if (equals == std::string::npos || find_option(key) == nullptr)
      throw ConfigError(
          "[submit] --sweep {}: {}", list,
          equals == std::string::npos
              ? std::string("no '='. Hint: --sweep train.lr=1e-3,3e-4")
              : unknown_key_text(key));
    std::vector<std::string> values;
    std::string value;
    // Commas inside brackets belong to a list value.
    int depth = 0;
    for (const char c : list.substr(equals + 1) + ",") {
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (c != ',' || depth > 0) {
        value += c;
        continue;
      }
      if (value.empty())
        throw ConfigError(
            "[submit] --sweep {}: an empty value. Hint: --sweep "
            "train.lr=1e-3,3e-4",
            list);
      values.push_back(value);
      value.clear();
    }
    multiply(key, values);
  }
  if (seeds > 0) {
    std::vector<std::string> values;
    for (int s = 1; s <= seeds; ++s) values.push_back(std::to_string(s));
    multiply("run.seed", values);
  }
  std::set<std::string> taken;
  for (auto& point : points) {
    if (!taken.insert(point.run_folder).second)
      throw ConfigError(
          "[submit] --sweep: two runs would have the folder {}. Hint: name "
          "each value once, and sweep one key of a name",
          point.run_folder);
    point.run_folder =
        (folder / (point.run_folder.empty() ? "run" : point.run_folder))
            .string();
  }
  return points;
}

}  // namespace chexnet
