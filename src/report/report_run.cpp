// The settings of a run and its course.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/data/findings.hpp"
#include "chexnet/report/overlap_figure.hpp"
#include "chexnet/report/plot.hpp"
#include "history.hpp"
#include "page.hpp"
#include "published_figures.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

std::string drawing(const Plot& plot, const std::string& caption) {
  const std::string svg = svg_plot(plot);
  return svg.empty() ? "" : html_figure(svg, caption);
}

// The command, or why none does.
std::string how_to_repeat(const Json& results) {
  HtmlTable changes("What resumes changed",
                    {"#from step", "what", "before", "after"});
  bool changed = false;
  for (const auto& change : member(results, "resume_changes")) {
    changes.add({count_text(change, "step"), text(change, "what"),
                 text(change, "before"), text(change, "after")});
    changed = true;
  }
  if (changed)
    return html_paragraph(
               "No command repeats this run to the last bit: it was resumed "
               "under other conditions.") +
           changes.html();
  const std::string command = text(results, "command");
  if (command.empty()) return "";
  return html_paragraph("This repeats the run:") + "<pre>" +
         xml_escaped(command) + "</pre>\n";
}

// "0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0 and 12 more": ranks.
std::string pairs_text(const Json& pairs) {
  constexpr size_t kShown = 4;
  std::string shown;
  size_t count = 0;
  for (const auto& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() ||
        !pair[1].is_number() || ++count > kShown)
      continue;
    shown +=
        (shown.empty() ? "" : ", ") + pair[0].dump() + " -> " + pair[1].dump();
  }
  if (count > kShown)
    shown += " and " + std::to_string(count - kShown) + " more";
  return shown;
}

std::string transports_of(const Json& results) {
  const Json& transports = member(results, "transports");
  if (const std::string why = text(transports, "not_recorded"); !why.empty())
    return html_paragraph("NCCL's transports were not recorded, as " + why +
                          ".");
  HtmlTable table("How NCCL connected the ranks' GPUs",
                  {"by", "from rank -> to rank", "used by", "#channels",
                   "slower than it could be"});
  for (const auto& entry : member(transports, "connections"))
    table.add({text(entry, "via"), pairs_text(member(entry, "pairs")),
               text(entry, "used_by"), count_text(entry, "channels"),
               text(entry, "concern")});
  return table.empty() ? "" : table.html();
}

}  // namespace

namespace {

// The use of its GPUs, by rank for as many as fit on a page: those that were
// least busy.
std::string gpu_part(const Json& totals) {
  if (!totals.is_object()) return "";
  const Json& by_rank = member(totals, "by_rank");
  std::vector<std::pair<double, std::string>> ranks;
  for (const auto& [rank, busy] : member(by_rank, "utilization").items())
    if (busy.is_number()) ranks.emplace_back(busy.get<double>(), rank);
  std::ranges::sort(ranks);
  constexpr size_t kMost = 16;
  HtmlTable table(ranks.size() > kMost ? "GPUs, the " + std::to_string(kMost) +
                                             " that were least busy"
                                       : "GPUs",
                  {"rank", "#busy, %", "#at most, GiB", "#W", "#MHz",
                   "#throttled, %", "#idle for data, %", "#for others, %"});
  for (size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    const auto& [busy, rank] = ranks[i];
    const auto cell = [&](const char* figure, double scale) {
      const auto value = number(member(by_rank, figure), rank.c_str());
      return value ? fixed(scale * *value, 0) : "";
    };
    table.add({rank, fixed(busy, 0), cell("memory_bytes", 0x1p-30),
               cell("power_w", 1), cell("clock_mhz", 1),
               cell("throttled_fraction", 100), cell("idle_input", 1),
               cell("idle_communication", 1)});
  }
  return html_paragraph(
             "GPUs, in the " +
             readable_s(std::max(0.0, number(totals, "seconds").value_or(0))) +
             " of the last start: " + text(totals, "figures") + "; " +
             text(totals, "rule") + ".") +
         table.html();
}

// Loading beside training, of the run's own times.
std::string overlap_part(const Json& overlap) {
  const auto loading = number(overlap, "loading_ms"),
             step = number(overlap, "step_ms"),
             hidden = number(overlap, "hidden");
  // Values that cannot be times of a step, as in an edited record.
  constexpr double kLeast = 0.05, kMost = 1e9;
  if (!loading || !step || !hidden || *loading <= 0 || *loading > kMost ||
      *step > kMost || *hidden < 0 || *hidden > 1)
    return "";
  const OverlapTimes times{.loading = *loading,
                           .computing = *step - (1 - *hidden) * *loading,
                           .step = *step};
  if (times.computing < kLeast) return "";
  return html_figure(svg_overlap(times),
                     "Loading and training, means of the last start's steps");
}

}  // namespace

std::string training_section(const std::filesystem::path& folder,
                             const Json& results) {
  const History history = history_of(folder);
  const std::string figures =
      drawing({.title = "Loss",
               .x_label = "step",
               .y_label = "",
               .curves = {history.train_loss, history.val_loss},
               .x_from_zero = true},
              "Mean binary cross-entropy") +
      drawing({.title = "Validation AUROC",
               .x_label = "step",
               .y_label = "",
               .curves = {history.val_auroc},
               .x_from_zero = true},
              "Mean over findings; the ring marks the best checkpoint") +
      drawing({.title = "Throughput",
               .x_label = "step",
               .y_label = "images/s",
               .curves = {history.images},
               .x_from_zero = true,
               .from_zero = true},
              "Of all ranks together") +
      drawing({.title = "Waiting",
               .x_label = "step",
               .y_label = "ms per step",
               .curves = {history.data_wait, history.allreduce_wait},
               .x_from_zero = true,
               .from_zero = true},
              "Time in which a step computes nothing, mean of the ranks") +
      overlap_part(member(results, "overlap"));
  std::string gpus = gpu_part(member(results, "gpu_totals"));
  if (figures.empty()) return gpus;
  std::string html = html_grid(figures) + gpus;
  if (history.own_ms.size() > 1) {
    HtmlTable table("Each rank's own time of a step, without waiting",
                    {"rank", "#ms"});
    for (const auto& [rank, ms] : history.own_ms)
      table.add({rank, fixed(ms, 1)});
    html += table.html();
  }
  return html;
}

std::string missing_images(const Json& results) {
  std::vector<std::string> missing;
  for (const auto& [name, facts] :
       member(member(results, "data"), "splits").items())
    if (const auto left_out = number(facts, "missing").value_or(0);
        left_out > 0)
      missing.push_back(fixed(left_out, 0) + " of " + name);
  if (missing.empty()) return "";
  return "Images of the table that were not there, and are left out of all "
         "that is said here (data.missing: skip): " +
         listed(missing);
}

std::string data_section(const Json& results, const std::string& split) {
  const Json& data = member(results, "data");
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
  const Json& evaluation = member(member(results, "evaluations"), split);
  const auto damaged = number(evaluation, "damaged");
  if (damaged && *damaged > 0)
    html += html_paragraph(
        counted(static_cast<int64_t>(*damaged), "damaged image") + " of the " +
        split + " split left out of all figures.");
  if (const std::string missing = missing_images(results); !missing.empty())
    html += html_paragraph(missing + ".");
  html += table.html();
  if (figures_of_same_list(results, split).empty())
    html += html_paragraph(kPublishedElsewhere);
  return html;
}

std::string settings_section(const Json& results) {
  HtmlTable table("Settings and environment", {"setting", "value"});
  for (const auto& row : member(results, "settings"))
    if (row.is_array() && row.size() == 2 && row[0].is_string() &&
        row[1].is_string())
      table.add({row[0].get<std::string>(), row[1].get<std::string>()});
  const Json& model = member(results, "model");
  return html_paragraph(
             is_ensemble(results)
                 ? "Each member's weights are those that its own run scored; "
                   "settings that differ stand one behind the other."
                 : "Scored were the " + text(model, "scored") +
                       " weights, of step " + count_text(model, "scored_step") +
                       ".") +
         how_to_repeat(results) + table.html() + transports_of(results);
}

}  // namespace chexnet
