#include "chexnet/report/model_card.hpp"

#include "chexnet/report/run_results.hpp"
#include "discrimination.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

// Text of the user's files stays text: no cell ends, no tag, no emphasis.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>#|!").find(c) != std::string_view::npos)
      out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string bullets(const std::vector<std::string>& lines) {
  std::string list;
  for (const auto& line : lines) list += "- " + plain(line) + "\n";
  return list;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + plain(cell) + " |";
  return line + "\n";
}

std::string head(const std::vector<std::string>& cells) {
  std::string line = row(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) line += "---|";
  return line + "\n";
}

std::string figures_table(const Json& evaluation) {
  std::string table = head({"finding", "positives", "AUROC (95 %)",
                            "average precision (95 %)", "Brier"});
  for (const auto& [name, f] : member(evaluation, "findings").items())
    table +=
        row({shown(name),
             count_text(f, "positives") +
                 (is_true(f, "few_positives") ? " (rough)" : ""),
             with_interval(number(f, "auroc"), interval(f, "auroc_interval")),
             with_interval(number(f, "average_precision"),
                           interval(f, "average_precision_interval")),
             digits(number(f, "brier"))});
  return table;
}

std::string points_table(const Json& evaluation) {
  const Json& points = member(evaluation, "operating_points");
  if (points.empty()) return "";
  std::string table =
      "\n## Operating points\n\nChosen on validation; a score of at least the "
      "threshold is positive. Rough: fewer than ten positives, here or where "
      "it was chosen.\n\n" +
      head({"finding", "rule", "threshold", "sensitivity", "specificity",
            "PPV"});
  for (const auto& point : points) {
    const auto threshold = number(point, "threshold");
    table += row(
        {shown(text(point, "finding")) +
             (is_true(point, "few_positives") ? " (rough)" : ""),
         rule_text(point), threshold ? significant(*threshold, 3) : "-",
         proportion_text(point, "sensitivity"),
         proportion_text(point, "specificity"), proportion_text(point, "ppv")});
  }
  return table;
}

std::string data_of(const Json& results) {
  std::string list;
  const Json& data = member(results, "data");
  for (const auto& [name, split] : member(data, "splits").items()) {
    const std::string patients = count_text(split, "patients");
    list += "- " + plain(name) + ": " +
            plural(count_text(split, "images"), "image") + " of " +
            plural(patients.empty() ? "unknown" : patients, "patient") +
            ", SHA-256 of their names " + plain(text(split, "sha256")) + "\n";
  }
  if (const std::string missing = missing_images(results); !missing.empty())
    list += bullets({missing});
  const std::string release = text(data, "release");
  return list + "- labels: SHA-256 of the table " +
         plain(text(data, "sha256")) +
         (release.empty() ? "" : "; " + plain(release)) + "\n";
}

// Whoever gets the weights cannot read it off the settings.
std::string resumes_table(const Json& results) {
  const Json& changes = member(results, "resume_changes");
  if (changes.empty()) return "";
  std::string table = "\n## What resumes changed\n\n" +
                      head({"from step", "what", "before", "after"});
  for (const auto& change : changes)
    table += row({count_text(change, "step"), text(change, "what"),
                  text(change, "before"), text(change, "after")});
  return table;
}

}  // namespace

std::string markdown_table(const Rows& rows) {
  std::string table = head({"setting", "value"});
  for (const auto& [name, value] : rows) table += row({name, value});
  return table;
}

// The sections of model cards (Mitchell et al., FAT* 2019), with what is known
// from the record of the run; whoever publishes a network adds the rest.
std::string model_card(const std::filesystem::path& folder) {
  const Json results = read_results(folder);
  const std::string split = main_split(results);
  const Json& evaluation = member(member(results, "evaluations"), split);
  const Json& model = member(results, "model");
  const std::string side = count_text(model, "input_px");
  const std::string frozen = text(model, "frozen");
  return "# " + plain(run_name(results)) +
         "\n\n**For research use. Not a medical device: not to be used for "
         "diagnosis.**\n\n" +
         plain(networks_text(results)) + " for chest X-rays of " + side +
         " x " + side + " pixels, trained by chexnet-train " +
         plain(text(results, "version")) + ", " +
         plain(text(results, "written")) +
         (frozen.empty() ? "" : ", " + plain(frozen)) +
         (is_ensemble(results)
              ? ". Each member's weights are those that its own run scored"
              : ". Weights: " + plain(text(model, "scored")) + ", of step " +
                    count_text(model, "scored_step")) +
         ".\n\n    chexnet-train predict " +
         (is_ensemble(results) ? "model.safetensors" : "checkpoints/best") +
         " IMAGES\n"
         "\n## Which findings it tells apart\n\nOn " +
         plural(count_text(evaluation, "images"), text(evaluation, "by")) +
         " of the " + plain(split) + " split: mean AUROC " +
         mean_auroc_text(evaluation) + ".\n\n" +
         bullets(sentences_of(discrimination_of(evaluation))) +
         "\n## Not to be used for\n\n" +
         bullets(limits_of_use(results, split)) + "\n## Figures\n\n" +
         figures_table(evaluation) + points_table(evaluation) +
         "\n## Data\n\n" + data_of(results) + resumes_table(results);
}

}  // namespace chexnet
