// An ensemble beside its members (train/ensemble.hpp).
#include <vector>

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
std::string spread_over_members(const Json& members, const char* key) {
  std::vector<double> values;
  for (const auto& m : members)
    if (const auto value = number(m, key)) values.push_back(*value);
  return spread_text(spread_of(values));
}

std::string members_table(const Json& results) {
  const Json& ensemble = member(results, "ensemble");
  const Json& members = member(ensemble, "members");
  const Json& evaluations = member(results, "evaluations");
  HtmlTable table(
      "Mean AUROC of each member alone, and of the mean of their logits (95 %)",
      {"network", "#validation", "#test", "#ensemble minus it, test"});
  for (const auto& m : members)
    table.add({text(m, "run"), digits(number(m, "validation")),
               digits(number(m, "test")), signed_with_interval(m)});
  table.add({"members, mean ± sd", spread_over_members(members, "validation"),
             spread_over_members(members, "test"),
             signed_with_interval(ensemble)});
  const auto own = [&](const char* split) {
    const Json& scores = member(evaluations, split);
    return scores.is_null() ? "-" : mean_auroc_text(scores);
  };
  table.add({"the ensemble", own("val"), own("test"), "-"});
  return table.html();
}

std::string spreads_table(const Json& spreads) {
  HtmlTable table(
      "How far the members' probabilities lie apart on test: standard "
      "deviation of an image",
      {"finding", "#half of the images, up to", "#any image, up to"});
  for (const auto& [finding, facts] : spreads.items())
    table.add({shown(finding), digits(number(facts, "median")),
               digits(number(facts, "most"))});
  return table.empty() ? "" : table.html();
}

}  // namespace

std::string ensemble_section(const Json& results) {
  const Json& ensemble = member(results, "ensemble");
  if (!is_ensemble(results)) return "";
  return members_table(results) +
         "<p class=\"soft\">On validation an image counts with the members "
         "that were not trained on it: of folds that is one, so the ensemble's "
         "figure there is that of all folds together, out of fold. Each "
         "difference is taken alone, for other patients of these very "
         "networks.</p>\n" +
         spreads_table(member(ensemble, "spreads"));
}

}  // namespace chexnet
