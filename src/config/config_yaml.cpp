// A Config as the text that runs and models keep, and the comparison on a
// resume.
#include <sstream>

#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"

namespace chexnet {

// Keys of one section stand together in the table, so each section is opened
// once.
std::string config_yaml(const Config& config) {
  std::string text;
  Strings open;  // the sections written so far
  for (const auto& option : config_options()) {
    Strings parts;
    std::istringstream key(option.key);
    for (std::string part; std::getline(key, part, '.');) parts.push_back(part);
    size_t same = 0;
    while (same < open.size() && same + 1 < parts.size() &&
           open[same] == parts[same])
      ++same;
    open.resize(same);
    for (size_t i = same; i + 1 < parts.size(); ++i) {
      text += std::string(2 * i, ' ') + parts[i] + ":\n";
      open.push_back(parts[i]);
    }
    text += std::string(2 * (parts.size() - 1), ' ') + parts.back() + ": " +
            option_text(option, config) + "\n";
  }
  return text;
}

Config without_places(Config config) {
  Config unset;
  config.run = unset.run;
  config.launch = unset.launch;
  config.data.s3 = unset.data.s3;
  for (const auto& option : config_options()) {
    if (!option.is_path) continue;
    const FieldRef to = option.field(config), from = option.field(unset);
    if (auto* const* path = std::get_if<std::string*>(&to))
      **path = *std::get<std::string*>(from);
    if (auto* const* paths = std::get_if<Strings*>(&to))
      **paths = *std::get<Strings*>(from);
    if (const auto* named = std::get_if<NamedValue>(&to))
      named->set(std::get<NamedValue>(from).get());
  }
  return config;
}

std::vector<std::string> resume_conflicts(const Config& before,
                                          const Config& now) {
  std::vector<std::string> lines;
  for (const auto& option : config_options()) {
    const auto was = option_text(option, before);
    const auto is = option_text(option, now);
    // Where `now` says "auto" a decided value stays, but for an AutoInteger.
    Config scratch;
    const bool decided = is == "auto" && !std::holds_alternative<AutoInteger>(
                                             option.field(scratch));
    if (was != is && option.effect == Effect::kAnotherRun && !decided)
      lines.push_back(option.key + ": " + was + " -> " + is);
  }
  return lines;
}

}  // namespace chexnet
