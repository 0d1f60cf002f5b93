#include "page.hpp"

#include <cassert>

#include "chexnet/report/plot.hpp"

namespace chexnet {
namespace {

// Text has a contrast of at least 4.5 on its ground in light and dark (WCAG
// 1.4.3), lines and marks of at least 3; tests/report/contrast_test.cpp holds
// that.
constexpr const char* kStyle = R"css(
:root{--page:#ffffff;--ink:#1b1f23;--soft:#57606a;--line:#d0d7de;
--curve:#1f6fb2;--second:#b34a12;--third:#2a7f3f;--note:#fdf4ee;--mark:#b34a12}
@media(prefers-color-scheme:dark){:root{--page:#12161a;--ink:#e6e9ec;
--soft:#a9b3bc;--line:#3a434c;--curve:#7db8ec;--second:#f0a070;--third:#7fce95;
--note:#2b211a;--mark:#f0a070}}
@media print{:root{--page:#ffffff;--ink:#1b1f23;--soft:#57606a;--line:#d0d7de;
--curve:#1f6fb2;--second:#b34a12;--third:#2a7f3f;--note:#fdf4ee;--mark:#b34a12}
nav{display:none}main{max-width:none;padding:0}
figure,tr{break-inside:avoid}h2,h3{break-after:avoid}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.2rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:.4rem 0}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-top:.6rem;
border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.4rem 0 .4rem}
p,li{max-width:46rem}ul{padding-left:1.2rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;
font-size:.92rem}
a{color:var(--curve)}
.notice{border-left:4px solid var(--mark);padding:.5rem 1rem;
background:var(--note)}
.soft{color:var(--soft)}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));
gap:0 2rem}
.wide{overflow-x:auto;margin:.6rem 0 1.2rem}
table{border-collapse:collapse;font-size:.9rem}
caption{text-align:left;color:var(--soft);padding-bottom:.3rem}
td,th{padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line);
text-align:left;vertical-align:top}
td{overflow-wrap:break-word}
th{font-weight:600;white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.groups{display:grid;gap:.4rem 2rem;
grid-template-columns:repeat(auto-fill,minmax(min(28rem,100%),1fr))}
.panels{display:grid;gap:.6rem;
grid-template-columns:repeat(auto-fill,minmax(8.6rem,1fr))}
.pictures{display:grid;gap:.8rem;
grid-template-columns:repeat(auto-fill,minmax(13rem,1fr))}
.grid{display:grid;gap:1rem 1.4rem;
grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr))}
figure{margin:0}figcaption{font-size:.88rem}
figure img{width:100%;height:auto;display:block}
pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;
background:var(--note);padding:.6rem .8rem;font-size:.88rem}
svg{width:100%;height:auto;display:block;font-size:12px;
font-family:system-ui,-apple-system,"Segoe UI",sans-serif}
svg.forest{max-width:34rem}
svg .ground{fill:var(--page)}
svg.plot{fill:var(--ink)}
svg .ink{fill:var(--ink)}svg .soft{fill:var(--soft)}
svg .rule{stroke:var(--line);stroke-width:1}
svg .chance{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 3}
svg .curve{fill:none;stroke:var(--curve);stroke-width:1.8}
svg .whisker{stroke:var(--curve);stroke-width:1.8}
svg .dot{fill:var(--curve);stroke:var(--page);stroke-width:1}
svg .hollow{fill:var(--page);stroke:var(--curve);stroke-width:1.8}
svg .c0{color:var(--curve)}svg .c1{color:var(--second)}
svg .c2{color:var(--third)}
)css";

bool is_figure(const std::string& column) { return column.starts_with('#'); }

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
         "dark\">\n<title>" +
         xml_escaped(title) + "</title><style>" + kStyle +
         "</style></head>\n<body><main>\n" + body + "</main></body></html>\n";
}

HtmlTable::HtmlTable(const std::string& caption,
                     const std::vector<std::string>& columns)
    : caption_(caption), columns_(columns) {}

void HtmlTable::add(const std::vector<std::string>& cells) {
  assert(cells.size() == columns_.size());
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string text = xml_escaped(cells[i]);
    if (i == 0)
      rows_ += "<th scope=\"row\">" + text + "</th>";
    else
      rows_ += (is_figure(columns_[i]) ? "<td class=\"n\">" : "<td>") + text +
               "</td>";
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  std::string head;
  for (const auto& column : columns_)
    head += (is_figure(column) ? "<th scope=\"col\" class=\"n\">" +
                                     xml_escaped(column.substr(1))
                               : "<th scope=\"col\">" + xml_escaped(column)) +
            "</th>";
  return "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"" +
         xml_escaped(caption_) + "\"><table><caption>" + xml_escaped(caption_) +
         "</caption>\n<thead><tr>" + head + "</tr></thead>\n<tbody>" + rows_ +
         "</tbody></table></div>\n";
}

std::string html_text(const std::string& text) { return xml_escaped(text); }

std::string html_notice() {
  return "<p class=\"notice\"><strong>For research use. Not a medical device: "
         "not to be used for diagnosis.</strong></p>\n";
}

std::string html_section(const std::string& id, const std::string& heading,
                         const std::string& body) {
  return "<section aria-labelledby=\"" + id + "\"><h2 id=\"" + id + "\">" +
         xml_escaped(heading) + "</h2>\n" + body + "</section>\n";
}

std::string html_paragraph(const std::string& text) {
  return "<p>" + xml_escaped(text) + "</p>\n";
}

std::string html_list(const std::vector<std::string>& lines) {
  std::string html = "<ul>\n";
  for (const auto& line : lines) html += "<li>" + xml_escaped(line) + "</li>\n";
  return html + "</ul>\n";
}

std::string html_figure(const std::string& svg, const std::string& caption) {
  return "<figure>" + svg + "<figcaption>" + xml_escaped(caption) +
         "</figcaption></figure>\n";
}

std::string html_pictures(const std::string& figures) {
  return "<div class=\"pictures\">\n" + figures + "</div>\n";
}

std::string html_group(const std::string& heading, const std::string& figures) {
  return "<div><h3>" + xml_escaped(heading) + "</h3>\n<div class=\"panels\">" +
         figures + "</div></div>\n";
}

std::string html_groups(const std::string& groups) {
  return "<div class=\"groups\">\n" + groups + "</div>\n";
}

std::string html_grid(const std::string& figures) {
  return "<div class=\"grid\">\n" + figures + "</div>\n";
}

}  // namespace chexnet
