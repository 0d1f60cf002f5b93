// An ensemble beside its members (train/ensemble.hpp).
#include <utility>
#include <vector>

#include "chexnet/core/text_table.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "chexnet/report/run_results.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

std::string difference_text(const Json& from) {
  return signed_with_interval(number(from, "difference"),
                              interval(from, "interval"));
}

// "0.7500 ± 0.0707 (n = 2)"
std::string spread_over_members(const Json& members, const char* split) {
  std::vector<double> values;
  for (const auto& m : members)
    if (const auto value = number(member(m, split), "mean_auroc"))
      values.push_back(*value);
  return spread_text(spread_of(values));
}

// Of each member, of all and of the ensemble: its name, mean AUROC on
// validation and on test, and by how much the ensemble is better there.
std::vector<std::vector<std::string>> member_rows(const Json& results,
                                                  int digits) {
  const Json& ensemble = member(results, "ensemble");
  const Json& members = member(ensemble, "members");
  const Json& evaluations = member(results, "evaluations");
  const auto score = [&](const Json& scores) {
    return number(scores, "mean_auroc") ? mean_auroc_text(scores, digits) : "-";
  };
  std::vector<std::vector<std::string>> rows;
  for (const auto& m : members)
    rows.push_back({text(m, "run"), score(member(m, "validation")),
                    score(member(m, "test")), difference_text(m)});
  rows.push_back(
      {"members, mean ± sd", spread_over_members(members, "validation"),
       spread_over_members(members, "test"), difference_text(ensemble)});
  rows.push_back({is_out_of_fold(results)
                      ? "the ensemble; validation out of fold"
                      : "the ensemble",
                  score(member(evaluations, "val")),
                  score(member(evaluations, "test")), "-"});
  return rows;
}

std::string members_table(const Json& results) {
  HtmlTable table(
      "Mean AUROC of each member alone, and of the mean of their logits (95 %)",
      {"network", "#validation", "#test", "#ensemble minus it, test"});
  for (const auto& row : member_rows(results, 3)) table.add(row);
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

std::string ensemble_text(const Json& results) {
  std::vector<std::vector<std::string>> lines = {
      {"mean AUROC of", "validation", "test",
       "ensemble minus it, test (95 %)"}};
  for (auto& row : member_rows(results, 4)) lines.push_back(std::move(row));
  return columns(lines);
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
