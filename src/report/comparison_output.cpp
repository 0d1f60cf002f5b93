#include "comparison_output.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "figure_output.hpp"

namespace chexnet {
namespace {

using chexnet::json_of;  // beside those below

// Small ones as "3e-11".
std::string p_text(const std::optional<double>& p) {
  if (!p || *p >= 0.0001) return figure_text(p, 4);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.0e", *p);
  return text.data();
}

Json json_of(const FindingComparison& f) {
  Json json;
  json["positives"] = f.positives;
  json["negatives"] = f.negatives;
  json["few_positives"] = f.few_positives();
  json["auroc"] = json_of(f.auroc_a);
  json["auroc_against"] = json_of(f.auroc_b);
  json["difference"] = json_of(f.difference.value);
  json["interval"] = json_of(f.difference.interval);
  json["p"] = json_of(f.p);
  json["interval_delong"] =
      f.delong ? json_of(std::optional(f.delong->interval)) : Json(nullptr);
  json["p_delong"] = f.delong ? json_of(f.delong->p) : Json(nullptr);
  return json;
}

}  // namespace

std::string comparison_text(const Comparison& comparison,
                            const std::string& against) {
  std::vector<std::vector<std::string>> lines = {
      {"  finding", "AUROC", "against", "difference", "95 %", "p", "p, DeLong",
       "positives"}};
  bool few = false;
  for (const auto& f : comparison.findings) {
    few = few || f.few_positives();
    lines.push_back({"  " + f.finding + (f.few_positives() ? " *" : ""),
                     figure_text(f.auroc_a), figure_text(f.auroc_b),
                     figure_text(f.difference.value),
                     interval_text(f.difference.interval, " .. "), p_text(f.p),
                     p_text(f.delong ? f.delong->p : std::nullopt),
                     std::to_string(f.positives)});
  }
  lines.push_back({"  mean", "-", "-",
                   figure_text(comparison.mean_difference.value),
                   interval_text(comparison.mean_difference.interval, " .. "),
                   p_text(comparison.mean_p), "-", "-"});
  std::string text = "\n\nAgainst " + against + ", " +
                     counted(static_cast<int64_t>(comparison.images), "image");
  if (comparison.only_one > 0)
    text += " (" + std::to_string(comparison.only_one) +
            " that only one of the two has scored are left out)";
  text += "\n" + columns(lines);
  text +=
      "  each finding taken alone: of twenty that do not differ, one has p "
      "below "
      "0.05\n";
  if (few) text += kRoughHere;
  text.pop_back();  // whoever prints ends the line
  return text;
}

Json comparison_json(const Comparison& comparison, const std::string& against) {
  Json json;
  json["against"] = against;
  json["images"] = comparison.images;
  json["only_one"] = comparison.only_one;
  for (const auto& f : comparison.findings)
    json["findings"][f.finding] = json_of(f);
  json["mean_difference"] = json_of(comparison.mean_difference.value);
  json["mean_interval"] = json_of(comparison.mean_difference.interval);
  json["mean_p"] = json_of(comparison.mean_p);
  return json;
}

}  // namespace chexnet
