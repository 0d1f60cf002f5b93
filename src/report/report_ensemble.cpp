// An ensemble beside its members (train/ensemble.hpp).
#include <vector>

#include "chexnet/eval/ensemble.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

std::string signed_with_interval(const Json& from) {
  const auto value = number(from, "difference");
  if (!value) return "-";
  return (*value < 0 ? "" : "+") +
         with_interval(value, interval(from, "interval"));
}

// "0.7500 ± 0.0707 (n = 2)"
std::string spread_over_members(const Json& members, const char* split) {
  std::vector<double> values;
  for (const auto& m : members)
    if (const auto value = number(member(m, split), "mean_auroc"))
      values.push_back(*value);
  return spread_text(spread_of(values));
}

std::string members_table(const Json& results) {
  const Json& ensemble = member(results, "ensemble");
  const Json& members = member(ensemble, "members");
  const Json& evaluations = member(results, "evaluations");
  HtmlTable table(
      "Mean AUROC of each member alone, and of the mean of their logits (95 %)",
      {"network", "#validation", "#test", "#ensemble minus it, test"});
  const auto score = [](const Json& scores) {
    return number(scores, "mean_auroc") ? mean_auroc_text(scores) : "-";
  };
  for (const auto& m : members)
    table.add({text(m, "run"), score(member(m, "validation")),
               score(member(m, "test")), signed_with_interval(m)});
  table.add({"members, mean ± sd", spread_over_members(members, "validation"),
             spread_over_members(members, "test"),
             signed_with_interval(ensemble)});
  table.add({is_out_of_fold(results) ? "the ensemble; validation out of fold"
                                     : "the ensemble",
             score(member(evaluations, "val")),
             score(member(evaluations, "test")), "-"});
  return table.html();
}

std::string spreads_table(const Json& spreads) {
  HtmlTable table(
      "How far the members' probabilities lie apart on test: standard "
      "deviation (n - 1) of an image",
      {"finding", "#half of the images, up to", "#any image, up to"});
  for (const auto& [finding, facts] : spreads.items())
    table.add({shown(finding), digits(number(facts, "median")),
               digits(number(facts, "most"))});
  return table.empty() ? "" : table.html();
}

}  // namespace

std::string networks_text(const Json& results) {
  std::string network = shown(text(member(results, "model"), "network"));
  if (!is_ensemble(results)) return network;
  return "The mean of " +
         std::to_string(member(member(results, "ensemble"), "members").size()) +
         " networks (" + network + ")";
}

std::string ensemble_section(const Json& results) {
  if (!is_ensemble(results)) return "";
  std::string note =
      "Each difference is taken alone, for other patients of these very "
      "networks.";
  if (is_out_of_fold(results))
    note =
        "Validation is out of fold: an image counts with the members that "
        "were not trained on its patient, and is training to the others. "
        "So its figures are of single members or some, not of their mean, "
        "and " +
        std::string(kChosenOutOfFold) + ". " + note;
  return members_table(results) + "<p class=\"soft\">" + note + "</p>\n" +
         spreads_table(member(member(results, "ensemble"), "spreads"));
}

}  // namespace chexnet
