// Pieces of an HTML page that needs neither network nor scripts, prints, and is
// readable in light and dark and on a phone.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// A whole page. `body` is HTML, `title` text.
std::string html_page(const std::string& title, const std::string& body);

// Cells are text and are escaped here. `columns`: headings; those that begin
// with '#' hold figures and stand to the right.
class HtmlTable {
 public:
  // `caption`: what the table is, for screen readers too.
  HtmlTable(const std::string& caption,
            const std::vector<std::string>& columns);
  void add(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::string caption_;
  std::vector<std::string> columns_;
  std::string rows_;
};

std::string html_text(const std::string& text);  // escaped
// That it is for research alone.
std::string html_notice();
std::string html_section(const std::string& id, const std::string& heading,
                         const std::string& body);
std::string html_paragraph(const std::string& text);
std::string html_list(const std::vector<std::string>& lines);
// A drawing with its caption below.
std::string html_figure(const std::string& svg, const std::string& caption);
// Pictures side by side, as many as fit.
std::string html_pictures(const std::string& figures);
// Small figures side by side under one heading.
std::string html_group(const std::string& heading, const std::string& figures);
// Such groups, two side by side where there is room.
std::string html_groups(const std::string& groups);
// Large figures, two side by side where there is room.
std::string html_grid(const std::string& figures);

}  // namespace chexnet
