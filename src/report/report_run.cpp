// What a run was made of and how it went.
#include <map>

#include "chexnet/core/files.hpp"
#include "chexnet/report/metric_lines.hpp"
#include "chexnet/report/plot.hpp"
#include "page.hpp"
#include "published_figures.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

// The lines of metrics.jsonl as curves over the step.
struct History {
  Curve train_loss{"training loss", {}, {}},
      val_loss{"validation loss", {}, {}},
      val_auroc{"validation mean AUROC", {}, {}}, images{"images/s", {}, {}},
      data_wait{"waiting for data", {}, {}},
      allreduce_wait{"waiting for other ranks", {}, {}};
  std::map<std::string, double> own_ms;  // of a step, by rank, at the end
};

void add_train(History& history, double step, const nlohmann::json& event) {
  const auto figure = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_number()
               ? std::optional(found->get<double>())
               : std::nullopt;
  };
  if (const auto loss = figure("loss"))
    history.train_loss.points.emplace_back(step, *loss);
  const auto rate = figure("images_per_s");
  if (rate) history.images.points.emplace_back(step, *rate);
  const auto steps = figure("steps"), wait = figure("data_wait_s"),
             others = figure("allreduce_wait_s");
  if (!steps || *steps <= 0) return;
  if (wait) history.data_wait.points.emplace_back(step, 1e3 * *wait / *steps);
  if (others)
    history.allreduce_wait.points.emplace_back(step, 1e3 * *others / *steps);
}

History history_of(const std::filesystem::path& folder) {
  History history;
  const auto path = folder / "metrics.jsonl";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return history;
  for_each_event(read_text(path), [&](const nlohmann::json& event,
                                      const std::string&) {
    const std::string kind = event.value("event", "");
    const double step = event.value("step", 0.0);
    const auto add = [&](Curve& curve, const char* key) {
      const auto y = event.find(key);
      if (y != event.end() && y->is_number())
        curve.points.emplace_back(step, y->get<double>());
    };
    if (kind == "train") add_train(history, step, event);
    if (kind == "val") {
      add(history.val_loss, "loss");
      add(history.val_auroc, "mean_auroc");
      if (event.value("best", "") == "yes" && !history.val_auroc.points.empty())
        history.val_auroc.marked = {history.val_auroc.points.size() - 1};
    }
    if (kind != "ranks") return;
    const auto own = event.value("own_ms_per_step", nlohmann::json::object());
    for (const auto& [rank, ms] : own.items())
      if (ms.is_number()) history.own_ms[rank] = ms.get<double>();
  });
  return history;
}

std::string drawing(const Plot& plot, const std::string& caption) {
  const std::string svg = svg_plot(plot);
  return svg.empty() ? "" : html_figure(svg, caption);
}

}  // namespace

std::string training_section(const std::filesystem::path& folder) {
  const History history = history_of(folder);
  const std::string figures =
      drawing({"Loss", "step", "", {history.train_loss, history.val_loss}},
              "Mean binary cross-entropy") +
      drawing({"Validation AUROC", "step", "", {history.val_auroc}},
              "Mean over findings; the ring marks the best checkpoint") +
      drawing({.title = "Throughput",
               .x_label = "step",
               .y_label = "images/s",
               .curves = {history.images},
               .from_zero = true,
               .digits = 0},
              "Of all ranks together") +
      drawing({.title = "Waiting",
               .x_label = "step",
               .y_label = "ms per step",
               .curves = {history.data_wait, history.allreduce_wait},
               .from_zero = true,
               .digits = 1},
              "Time in which a step computes nothing");
  if (figures.empty()) return "";
  std::string html = html_grid(figures);
  if (history.own_ms.size() > 1) {
    HtmlTable table("Each rank's own time of a step, without waiting",
                    {"rank", "#ms"});
    for (const auto& [rank, ms] : history.own_ms)
      table.add({rank, fixed(ms, 1)});
    html += table.html();
  }
  return html;
}

std::string data_section(const Record& results, const std::string& split) {
  const Record& data = member(results, "data");
  HtmlTable table("Splits; the hash is of the list of image names",
                  {"split", "#images", "#patients", "SHA-256"});
  for (const auto& [name, facts] : member(data, "splits").items()) {
    const std::string patients = count_text(facts, "patients");
    table.add({name, count_text(facts, "images"),
               patients.empty() ? "not known" : patients,
               text(facts, "sha256")});
  }
  std::string html;
  html += html_paragraph(
      "Labels: " + text(data, "table") + ", SHA-256 " + text(data, "sha256") +
      (text(data, "release").empty() ? "."
                                     : "; " + text(data, "release") + "."));
  const Record& evaluation = member(member(results, "evaluations"), split);
  const auto damaged = number(evaluation, "damaged");
  if (damaged && *damaged > 0)
    html += html_paragraph(
        counted(static_cast<std::int64_t>(*damaged), "damaged image") +
        " of the " + split + " split left out of all figures.");
  html += table.html();
  if (figures_of_same_list(results, split).empty())
    html += html_paragraph(kPublishedElsewhere);
  return html;
}

std::string settings_section(const Record& results) {
  HtmlTable table("Settings and environment", {"setting", "value"});
  for (const auto& row : member(results, "settings"))
    if (row.is_array() && row.size() == 2 && row[0].is_string() &&
        row[1].is_string())
      table.add({row[0].get<std::string>(), row[1].get<std::string>()});
  const Record& model = member(results, "model");
  return html_paragraph(
             "Scored were the " + text(model, "scored") + " weights, of step " +
             count_text(model, "scored_step") + ". This repeats the run:") +
         "<pre>" + xml_escaped(text(results, "command")) + "</pre>\n" +
         table.html();
}

}  // namespace chexnet
