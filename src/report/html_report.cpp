#include "chexnet/report/html_report.hpp"

#include <cassert>
#include <nlohmann/json.hpp>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/report/metric_lines.hpp"
#include "chexnet/report/plot.hpp"

namespace chexnet {
namespace {

// Findings, titles and settings are texts of the user's files: each goes
// through xml_escaped on its way into the page, so none becomes markup.

std::string curves_html(const std::filesystem::path& folder) {
  Curve train{"training loss", curve_color(0), {}, {}},
      val_loss{"validation loss", curve_color(1), {}, {}},
      val_auroc{"validation mean AUROC", curve_color(2), {}, {}};
  const auto add_event = [&](const nlohmann::json& event, const std::string&) {
    const auto add = [&](Curve& curve, const char* key) {
      const auto x = event.find("step"), y = event.find(key);
      if (x != event.end() && y != event.end() && y->is_number())
        curve.points.emplace_back(x->get<double>(), y->get<double>());
    };
    const std::string kind = event.value("event", "");
    if (kind == "train") add(train, "loss");
    if (kind == "val") {
      add(val_loss, "loss");
      add(val_auroc, "mean_auroc");
    }
  };
  for_each_event(read_text(folder / "metrics.jsonl"), add_event);
  return svg_plot({"Loss", "step", "", {train, val_loss}}) +
         svg_plot({"Validation AUROC", "step", "", {val_auroc}});
}

}  // namespace

void write_report(const std::filesystem::path& folder, const std::string& title,
                  const Rows& settings,
                  const std::vector<SplitScores>& results) {
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
      "name=\"viewport\" "
      "content=\"width=device-width\"><title>" +
      xml_escaped(title) +
      "</title><style>body{font:15px/1.5 "
      "system-ui,sans-serif;max-width:60rem;margin:2rem "
      "auto;padding:0 1rem;color:#1b1f23}"
      "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem "
      ".2rem "
      "0;border-bottom:1px solid #e3e6e8;text-align:left;vertical-align:top}"
      "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.notice{"
      "border-left:4px solid "
      "#c2571a;padding:.4rem 1rem;background:#fdf4ee}"
      "svg{width:100%;max-width:44rem;display:block;margin:1rem "
      "0}</style></head><body>\n<h1>" +
      xml_escaped(title) +
      "</h1>\n<p class=\"notice\">For research use. Not a medical device: not "
      "to be used for "
      "diagnosis.</p>\n";
  for (const auto& result : results) {
    const Scores& s = result.scores;
    assert(s.auroc.size() == s.findings.size() &&
           s.positives.size() == s.findings.size());
    html +=
        "<h2>AUROC on the " + xml_escaped(result.split) + " split (" +
        images_text(s) +
        ")</h2>\n<table><tr><th>finding</th><th class=\"n\">positives</th><th "
        "class=\"n\">AUROC</th></tr>\n";
    for (std::size_t k = 0; k < s.findings.size(); ++k)
      html +=
          "<tr><td>" + xml_escaped(s.findings[k]) + "</td><td class=\"n\">" +
          std::to_string(s.positives[k]) + "</td><td class=\"n\">" +
          (s.auroc[k] ? fixed(*s.auroc[k], 4) : "not defined") + "</td></tr>\n";
    html +=
        "<tr><th>mean</th><th></th><th class=\"n\">" +
        (s.mean_auroc ? fixed(*s.mean_auroc, 4) : std::string("not defined")) +
        "</th></tr></table>\n";
  }
  html += "<h2>Training</h2>\n" + curves_html(folder) +
          "\n<h2>Settings</h2>\n<table>";
  for (const auto& [name, value] : settings)
    html += "<tr><th>" + xml_escaped(name) + "</th><td>" + xml_escaped(value) +
            "</td></tr>\n";
  html += "</table>\n<p>Written " + utc_time() +
          " by chexnet-train.</p></body></html>\n";
  write_atomically(folder / "report.html", html);
}

}  // namespace chexnet
