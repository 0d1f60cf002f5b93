#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "table_rows.hpp"

namespace chexnet {

void read_nih(const std::string& text, const TableFile& file, RowChoice& choice,
              Manifest& m) {
  m.findings = nih_findings();
  CsvReader csv(text, m.path, separator_of(text));
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "this should be Data_Entry_2017.csv");
  const std::vector<std::string> header = read_header(fields, table);
  const size_t image = column(header, "Image Index", table, kOtherLayout);
  const size_t labels = column(header, "Finding Labels", table);
  const size_t patient = column(header, "Patient ID", table);
  const size_t age = column(header, "Patient Age", table);
  const bool says_sex =
      std::ranges::find(header, "Patient Sex") != header.end();
  const size_t sex =
      column(header, says_sex ? "Patient Sex" : "Patient Gender", table);
  const size_t view = column(header, "View Position", table);
  const size_t weight = optional_column(header, file.sample_weight, table);
  choice.begin_table(m.path, header, {image, age, sex, view});
  const size_t needed = std::max({image, labels, patient, age, sex, view}) + 1;
  std::unordered_map<std::string_view, size_t> index;
  for (size_t k = 0; k < m.findings.size(); ++k)
    index.emplace(m.findings[k], k);
  while (csv.next(fields)) {
    table.line = csv.line();
    // The two bracket names of the header contain commas, so rows have 11
    // fields (12 with the 2017 file's last comma).
    if (fields.size() < needed || fields.size() > 12)
      table.fail(formatted("row has {}, expected 11",
                           counted(std::ssize(fields), "field")),
                 "the row is damaged or cut off");
    if (!add_row(m, table, choice, fields, fields[image], fields[patient]))
      continue;
    const size_t at = m.labels.size();
    m.labels.resize(at + m.findings.size(), 0.0f);
    std::string_view list = trimmed(fields[labels]);
    if (list.empty())
      table.fail("finding labels are empty",
                 "NIH writes 'No Finding' where there is none");
    while (!list.empty()) {
      const auto bar = list.find('|');
      const auto name = trimmed(list.substr(0, bar));
      list.remove_prefix(bar == std::string_view::npos ? list.size() : bar + 1);
      if (name == "No Finding") continue;
      const auto found = index.find(name);
      if (found == index.end())
        table.fail("unknown finding '" + std::string(name) + "'",
                   "nearest are " + nearest_names(name, m.findings));
      m.labels[at + found->second] = 1.0f;
    }
    push_weight(fields, weight, table, file, m);
    push_known({parse_age(fields[age]), fields[sex], fields[view]}, m);
  }
}

}  // namespace chexnet
