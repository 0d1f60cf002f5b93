// Pictures with heat maps; how figures differ between groups of patients and by
// calibration.
#include <map>
#include <string_view>

#include "chexnet/report/plot.hpp"
#include "page.hpp"
#include "report_sections.hpp"
#include "run_examples.hpp"
#include "significant.hpp"

namespace chexnet {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// RFC 4648.
std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i)
      three = three << 8U |
              (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i])
                                     : 0U);
    for (size_t i = 0; i < 4; ++i)
      text +=
          at + i > bytes.size() ? '=' : kBase64[three >> (6 * (3 - i)) & 63U];
  }
  return text;
}

std::string score_text(const std::optional<double>& value) {
  return value ? significant(*value, 2) : "-";
}

std::string picture_html(const RunExample& example) {
  const std::string caption = shown(example.finding) + ", " + example.kind +
                              ": score " + score_text(example.probability) +
                              ", threshold " + score_text(example.threshold);
  return html_figure("<img alt=\"X-ray with heat map, " + xml_escaped(caption) +
                         "\" src=\"data:image/png;base64," +
                         base64(example.png) + "\">",
                     caption);
}

}  // namespace

std::string examples_section(const std::filesystem::path& folder) {
  std::string figures;
  for (const auto& example : read_examples(folder))
    figures += picture_html(example);
  if (figures.empty()) return "";
  return html_paragraph(
             "Of the findings with the most positives the clearest hit, the "
             "clearest miss and the clearest false alarm: extremes, not "
             "typical images. The map shows which places raise the score, the "
             "brighter the more; without color they do not. It explains the "
             "score: that need not be where the finding is.") +
         html_pictures(figures);
}

std::string subgroups_section(const Json& evaluation) {
  std::string html;
  for (const auto& table : member(evaluation, "subgroups")) {
    const std::string by = text(table, "by");
    HtmlTable rows("By " + by, {"finding", by, "#images", "#positives",
                                "#AUROC (95 %)", "#gap to all others (95 %)"});
    for (const auto& [finding, of] : member(table, "findings").items())
      for (const auto& group : member(of, "groups")) {
        if (is_true(group, "few_positives")) continue;
        rows.add(
            {shown(finding), text(group, "value"), count_text(group, "images"),
             count_text(group, "positives"),
             with_interval(number(group, "auroc"), interval(group, "interval")),
             with_interval(number(group, "gap"),
                           interval(group, "gap_interval"))});
      }
    if (!rows.empty()) html += rows.html();
  }
  if (html.empty()) return "";
  return html_paragraph(
             "Gap: the AUROC minus that of all other images. Each gap is "
             "taken alone: of twenty between groups that do not differ, one "
             "has an interval that leaves out 0. Groups with fewer than ten "
             "positives "
             "are in results.json alone. No interval: fewer than five patients "
             "with the finding, or without, in the group or outside of it.") +
         html;
}

std::string calibration_section(const Json& evaluation) {
  const std::vector<std::string> kinds = {"none", "temperature", "isotonic"};
  HtmlTable table(
      "Brier score and expected calibration error (ten bins of equal count)",
      {"finding", "#Brier", "#by temperature", "#isotonic", "#ECE",
       "#by temperature", "#isotonic"});
  std::map<std::string, std::map<std::string, Json>> by_finding;
  std::vector<std::string> order;
  bool fitted = false;
  for (const auto& row : member(evaluation, "reliability")) {
    const std::string finding = text(row, "finding");
    if (!by_finding.contains(finding)) order.push_back(finding);
    by_finding[finding][text(row, "calibration")] = row;
    fitted = fitted || text(row, "calibration") != "none";
  }
  if (!fitted) return "";
  for (const auto& finding : order) {
    const auto& rows = by_finding[finding];
    std::vector<std::string> cells = {shown(finding)};
    bool rough = false;
    const auto add = [&](const auto& figure) {
      for (const auto& kind : kinds) {
        const auto row = rows.find(kind);
        cells.push_back(row == rows.end() ? "-" : digits(figure(row->second)));
        rough = rough ||
                (row != rows.end() && is_true(row->second, "few_positives"));
      }
    };
    add([](const Json& row) { return number(row, "brier"); });
    add([](const Json& row) {
      return number(member(row, "calibration_error"), "equal_masses");
    });
    if (rough) cells[0] += " (rough)";
    table.add(cells);
  }
  return html_paragraph(
             "Of the scores as they are, and behind the maps that were fitted "
             "on validation: one temperature for a finding, or an isotonic "
             "step function. Rough: fewer than ten positives, here or there.") +
         table.html();
}

}  // namespace chexnet
