#include "chexnet/report/html_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/files.hpp"
#include "chexnet/core/resources.hpp"

namespace chexnet {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Curve {
  std::string name, color;
  std::vector<std::pair<double, double>> points;  // (step, value)
};

std::string plot(const std::string& title, const std::vector<Curve>& curves) {
  constexpr double kWidth = 640, kHeight = 240, kLeft = 60, kBottom = 30, kTop = 28, kRight = 12;
  double x_max = 1, y_min = 1e300, y_max = -1e300;
  for (const auto& curve : curves) {
    for (const auto& [x, y] : curve.points) {
      x_max = std::max(x_max, x);
      y_min = std::min(y_min, y);
      y_max = std::max(y_max, y);
    }
  }
  if (y_min > y_max) return {};
  if (y_max - y_min < 1e-9) y_max = y_min + 1e-3;
  const auto px = [&](double x) { return kLeft + x / x_max * (kWidth - kLeft - kRight); };
  const auto py = [&](double y) {
    return kHeight - kBottom - (y - y_min) / (y_max - y_min) * (kHeight - kBottom - kTop);
  };
  std::string svg = "<svg viewBox=\"0 0 640 240\" role=\"img\" aria-label=\"" + escaped(title) +
                    "\"><text x=\"60\" y=\"16\" class=\"t\">" + escaped(title) + "</text>";
  for (int i = 0; i <= 4; ++i) {
    const double y = y_min + (y_max - y_min) * i / 4, x = x_max * i / 4;
    svg += "<line x1=\"60\" x2=\"628\" y1=\"" + fixed(py(y), 1) + "\" y2=\"" + fixed(py(y), 1) +
           "\" class=\"g\"/><text x=\"54\" y=\"" + fixed(py(y) + 4, 1) + "\" text-anchor=\"end\">" +
           fixed(y, 3) + "</text><text x=\"" + fixed(px(x), 1) +
           "\" y=\"226\" text-anchor=\"middle\">" + fixed(x, 0) + "</text>";
  }
  double legend = 628;
  for (const auto& curve : curves) {
    if (curve.points.empty()) continue;
    svg += "<polyline fill=\"none\" stroke=\"" + curve.color + "\" stroke-width=\"1.6\" points=\"";
    for (const auto& [x, y] : curve.points) svg += fixed(px(x), 1) + "," + fixed(py(y), 1) + " ";
    svg += "\"/><text x=\"" + fixed(legend, 0) + "\" y=\"16\" text-anchor=\"end\" fill=\"" +
           curve.color + "\">" + escaped(curve.name) + "</text>";
    legend -= 12 + 7 * static_cast<double>(curve.name.size());
  }
  return svg + "</svg>";
}

std::string curves_html(const std::filesystem::path& folder) {
  Curve train{"training loss", "#1f6fb2", {}}, val_loss{"validation loss", "#c2571a", {}},
      val_auroc{"validation mean AUROC", "#2a7f3f", {}};
  const std::string text = read_text(folder / "metrics.jsonl");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = nlohmann::json::parse(text.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (line.is_discarded()) continue;
    const auto add = [&](Curve& curve, const char* key) {
      if (line.contains(key) && line[key].is_number())
        curve.points.emplace_back(line["step"].get<double>(), line[key].get<double>());
    };
    if (line["event"] == "train") add(train, "loss");
    if (line["event"] == "val") {
      add(val_loss, "loss");
      add(val_auroc, "mean_auroc");
    }
  }
  return plot("Loss by step", {train, val_loss}) + plot("AUROC by step", {val_auroc});
}

}  // namespace

void write_report(const std::filesystem::path& folder, const std::string& title,
                  const Rows& settings, const std::vector<SplitScores>& results) {
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>" +
      escaped(title) +
      "</title><style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem "
      "auto;padding:0 1rem;color:#1b1f23}"
      "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem .2rem "
      "0;border-bottom:1px solid #e3e6e8;text-align:left;vertical-align:top}"
      "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.notice{border-left:4px solid "
      "#c2571a;padding:.4rem 1rem;background:#fdf4ee}"
      "svg{width:100%;max-width:44rem;display:block;margin:1rem 0;font-size:11px}svg "
      ".t{font-size:13px;font-weight:600}svg .g{stroke:#e3e6e8}</style></head><body>\n<h1>" +
      escaped(title) +
      "</h1>\n<p class=\"notice\">For research use. Not a medical device: not to be used for "
      "diagnosis.</p>\n";
  for (const auto& result : results) {
    const Scores& s = result.scores;
    html += "<h2>AUROC on the " + escaped(result.split) + " split (" + std::to_string(s.images) +
            " images)</h2>\n<table><tr><th>finding</th><th class=\"n\">positives</th><th "
            "class=\"n\">AUROC</th></tr>\n";
    for (std::size_t k = 0; k < s.findings.size(); ++k)
      html += "<tr><td>" + escaped(s.findings[k]) + "</td><td class=\"n\">" +
              std::to_string(s.positives[k]) + "</td><td class=\"n\">" +
              (s.auroc[k] ? fixed(*s.auroc[k], 4) : "not defined") + "</td></tr>\n";
    html += "<tr><th>mean</th><th></th><th class=\"n\">" +
            (s.mean_auroc ? fixed(*s.mean_auroc, 4) : std::string("not defined")) +
            "</th></tr></table>\n";
  }
  html += "<h2>Training</h2>\n" + curves_html(folder) + "\n<h2>Settings</h2>\n<table>";
  for (const auto& [name, value] : settings)
    html += "<tr><th>" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
  html += "</table>\n<p>Written " + utc_time() + " by chexnet-train.</p></body></html>\n";
  write_atomically(folder / "report.html", html);
}

}  // namespace chexnet
