#include "subgroup_output.hpp"

#include "chexnet/core/text_table.hpp"

namespace chexnet {
namespace {

using chexnet::json_of;  // beside those below

// A row for each group of each finding. How many images had no value of the
// column may differ between findings, whose labels differ: the most is said.
std::string text_of(const SubgroupTable& table) {
  std::vector<std::vector<std::string>> lines = {
      {"  finding", table.column, "images", "positives", "AUROC", "95 %", "gap",
       "95 % of the gap"}};
  bool few = false;
  size_t unknown = 0;
  for (size_t k = 0; k < table.findings.size(); ++k) {
    unknown = std::max(unknown, table.of[k].unknown);
    for (const Subgroup& g : table.of[k].groups) {
      few = few || g.few_positives();
      lines.push_back(
          {"  " + table.findings[k] + (g.few_positives() ? " *" : ""), g.value,
           std::to_string(g.images), std::to_string(g.positives),
           figure_text(g.auroc), interval_text(g.interval, " - "),
           figure_text(g.gap), interval_text(g.gap_interval, " .. ")});
    }
  }
  std::string text = "\n\nBy " + table.column +
                     "; gap: AUROC minus that of all others. Of twenty gaps "
                     "one leaves out 0 by chance\n" +
                     columns(lines);
  if (unknown > 0)
    text += "  left out, as it is not known: up to " +
            counted(static_cast<int64_t>(unknown), "image") + "\n";
  if (few) text += kRoughHere;
  text.pop_back();  // whoever prints ends the line
  return text;
}

Json json_of(const Subgroup& g) {
  return {
      {"value", g.value},          {"images", g.images},
      {"patients", g.patients},    {"positives", g.positives},
      {"negatives", g.negatives},  {"few_positives", g.few_positives()},
      {"auroc", json_of(g.auroc)}, {"interval", json_of(g.interval)},
      {"gap", json_of(g.gap)},     {"gap_interval", json_of(g.gap_interval)}};
}

}  // namespace

std::string subgroups_text(const std::vector<SubgroupTable>& tables) {
  std::string text;
  for (const auto& table : tables) text += text_of(table);
  return text;
}

Json subgroups_json(const std::vector<SubgroupTable>& tables) {
  Json json = Json::array();
  for (const auto& table : tables) {
    Json findings;
    for (size_t k = 0; k < table.findings.size(); ++k) {
      const Subgroups& of = table.of[k];
      Json& finding = findings[table.findings[k]];
      finding = {{"unknown", of.unknown},
                 {"largest_gap", json_of(of.largest_gap)},
                 {"groups", Json::array()}};
      for (const Subgroup& group : of.groups)
        finding["groups"].push_back(json_of(group));
    }
    json.push_back({{"by", table.column}, {"findings", findings}});
  }
  return json;
}

}  // namespace chexnet
