#include "page.hpp"

#include <cassert>

#include "chexnet/report/plot.hpp"
#include "page_style.hpp"

namespace chexnet {
namespace {

// Columns of figures are marked by their heads: aligned to the right, digits of
// one width.
bool is_figure(const std::string& column) { return column.starts_with('#'); }

// A figure may be broken before its interval, and nowhere else: a table that
// does not fit becomes narrower that way, and one that does has single lines.
std::string figure_cell(const std::string& tag, const std::string& text) {
  const std::string name = tag.substr(0, tag.find(' '));
  const auto interval = text.find(" (");
  if (interval == std::string::npos)
    return "<" + tag + " class=\"n\">" + xml_escaped(text) + "</" + name + ">";
  return "<" + tag + " class=\"n breaks\"><span>" +
         xml_escaped(text.substr(0, interval)) + "</span> <span>" +
         xml_escaped(text.substr(interval + 1)) + "</span></" + name + ">";
}

}  // namespace

// The page fetches nothing and has no scripts: it works from a file, in a mail
// and behind a hospital's proxy.
std::string html_page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
         "dark\">\n<title>" +
         xml_escaped(title) + "</title><style>" + kPageStyle +
         "</style></head>\n<body><main>\n" + body + "</main></body></html>\n";
}

HtmlTable::HtmlTable(const std::string& caption,
                     const std::vector<std::string>& columns)
    : caption_(caption), columns_(columns) {}

void HtmlTable::add(const std::vector<std::string>& cells) {
  assert(cells.size() == columns_.size());
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == 0)
      rows_ += "<th scope=\"row\">" + xml_escaped(cells[i]) + "</th>";
    else if (is_figure(columns_[i]))
      rows_ += figure_cell("td", cells[i]);
    else
      rows_ += "<td>" + xml_escaped(cells[i]) + "</td>";
  }
  rows_ += "</tr>\n";
}

// A wide table scrolls by itself on a phone, and can be reached by keyboard.
std::string HtmlTable::html() const {
  std::string head;
  for (const auto& column : columns_)
    head += is_figure(column)
                ? figure_cell("th scope=\"col\"", column.substr(1))
                : "<th scope=\"col\">" + xml_escaped(column) + "</th>";
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
