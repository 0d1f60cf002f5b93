#include "chexnet/report/html_report.hpp"

#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/report/help_bundle.hpp"
#include "chexnet/report/model_card.hpp"
#include "chexnet/report/plot.hpp"
#include "chexnet/report/run_results.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

// A section with its entry in the list of contents.
class Body {
 public:
  void add(const std::string& id, const std::string& heading,
           const std::string& html) {
    if (html.empty()) return;
    contents_ +=
        "<li><a href=\"#" + id + "\">" + xml_escaped(heading) + "</a></li>\n";
    sections_ += html_section(id, heading, html);
  }
  std::string html(const std::string& opening) const {
    return opening + "<nav aria-label=\"contents\"><ul>\n" + contents_ +
           "</ul></nav>\n" + sections_;
  }

 private:
  std::string contents_, sections_;
};

// The results in the form for passing on. Names that somebody may have chosen
// freely (of splits, of the release, of the run) are removed too, as a hospital
// or a patient may be in them.
Json redacted(const Json& results, const std::filesystem::path& folder) {
  Json shared = Json::parse(
      redaction_of_run(folder).of_json(json_text(results)), nullptr, false);
  if (!shared.is_object()) return Json::object();
  const auto keep_splits = [](Json& splits) {
    if (!splits.is_object()) return;
    Json known = Json::object();
    for (const char* name : {"train", "val", "test"})
      if (splits.contains(name)) known[name] = splits[name];
    splits = known;
  };
  if (shared.contains("evaluations")) keep_splits(shared["evaluations"]);
  if (shared.contains("data") && shared["data"].is_object()) {
    Json& data = shared["data"];
    if (data.contains("splits")) keep_splits(data["splits"]);
    data.erase("release");  // free text, where somebody changed it
  }
  shared.erase("command");
  if (is_ensemble(shared)) {
    int number = 0;
    for (auto& m : shared["ensemble"]["members"])
      m["run"] = "network " + std::to_string(++number);
  }
  shared["run"] = "A network for chest X-rays";  // its own name is free text
  return shared;
}

}  // namespace

// The split whose figures open the page: test, or the one there is.
std::string main_split(const Json& results) {
  const Json& evaluations = member(results, "evaluations");
  if (!evaluations.is_object() || evaluations.empty() ||
      evaluations.contains("test"))
    return "test";
  return evaluations.begin().key();
}

void write_report(const std::filesystem::path& folder) {
  write_atomically(folder / "report.html", report_html(folder, {}));
  write_atomically(folder / "model_card.md", model_card(folder));
}

std::string report_html(const std::filesystem::path& folder,
                        const ReportOptions& options) {
  const Json read = read_results(folder);
  const Json results = options.for_sharing ? redacted(read, folder) : read;
  const std::string split = main_split(results);
  const Json& evaluations = member(results, "evaluations");
  const Json& evaluation = member(evaluations, split);
  Body body;
  body.add("figures", "Figures of each finding, " + split + " split",
           figures_section(results, split));
  body.add("members", "Members", ensemble_section(results));
  body.add("operating", "Operating points", operating_section(evaluation));
  body.add("curves", "Curves", curves_section(folder, evaluation, split));
  body.add("calibration", "Calibration", calibration_section(evaluation));
  body.add("subgroups", "Groups of patients", subgroups_section(evaluation));
  if (!options.for_sharing)
    body.add("examples", "Examples", examples_section(folder));
  body.add("data", "Data and split", data_section(results, split));
  for (const auto& [other, figures] : evaluations.items())
    if (other != split)
      body.add("figures-" + other, "Figures, " + other + " split",
               figures_section(results, other));
  body.add("training", "Training", training_section(folder, results));
  body.add("settings", "How it was made", settings_section(results));
  body.add("gaps", "What this page lacks",
           gaps_section(results, split, folder, options.for_sharing));
  return html_page(
      run_name(results) + " - chexnet-train",
      body.html(opening(results, split)) + "<p class=\"soft\">Written " +
          xml_escaped(text(results, "written")) + " by chexnet-train " +
          xml_escaped(text(results, "version")) + ".</p>\n");
}

}  // namespace chexnet
