// VinDr-CXR: three readers an image for training, their consensus for test.
// docs/labels.md says where each fact is from and what nobody has checked.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "labels.hpp"
#include "table_rows.hpp"

namespace chexnet {
namespace {

// The readers' findings for each image: [row].
struct Votes {
  std::unordered_map<std::string, size_t> row_of;  // npos: left out
  std::unordered_set<std::string> cast;            // by image and reader
  std::vector<int> readers;
};

// Labels hold the number of readers who see the finding.
void decide_votes(const Votes& votes, Manifest& m) {
  const size_t findings = m.finding_count();
  for (size_t row = 0; row < m.size(); ++row)
    for (size_t k = 0; k < findings; ++k) {
      float& label = m.labels[row * findings + k];
      label = 2 * label > static_cast<float>(votes.readers[row]) ? 1.0f : 0.0f;
    }
  const auto [least, most] = std::ranges::minmax(votes.readers);
  if (least != most)
    log_warning(m.path + ": some images have " + counted(least, "reader") +
                ", others " + std::to_string(most) + ": is it cut off?");
}

}  // namespace

void read_vindr(const std::string& text, const TableFile& file,
                RowChoice& choice, Manifest& m) {
  TableRows rows(text, m.path);
  for (auto& name : rows.header) {  // of the table for test, of ChestX-ray14
    if (name == "Other disease") name = "Other diseases";
    if (name == "Pulmonary fibrosis") name = "Fibrosis";
  }
  const size_t image = rows.column("image_id"),
               reader = optional_column(rows.header, "rad_id", rows.table),
               weight =
                   optional_column(rows.header, file.sample_weight, rows.table);
  const auto columns = take_findings(
      rows,
      {image, reader, optional_column(rows.header, "No finding", rows.table),
       weight},
      "is this the table of labels?", m);
  // A filter may not choose among readers; all images are PA.
  choice.begin_table(m.path, {"image_id", "view"}, {.image = 0, .view = 1});
  m.knows_patients = false;
  Votes votes;
  while (rows.next()) {
    const std::string id(rows.cell(image));
    if (!votes.cast.insert(id + "\n" + std::string(rows.cell(reader))).second)
      rows.table.fail("this reader's row of the image appears twice",
                      "remove one of the rows");
    const auto [place, is_new] = votes.row_of.emplace(id, std::string::npos);
    if (is_new && add_row(m, rows.table, choice, {id, "PA"}, id + ".png", id)) {
      place->second = m.size() - 1;
      m.labels.resize(m.labels.size() + columns.size(), 0.0f);
      votes.readers.push_back(0);
      push_weight(rows.fields, weight, rows.table, file, m);
      push_known({.age = kUnlabeled, .view = "PA"}, m);
    }
    if (place->second == std::string::npos) continue;
    ++votes.readers[place->second];
    for (size_t k = 0; k < columns.size(); ++k) {
      const float said =
          parse_label(rows.fields[columns[k]], rows.table, m.findings[k]);
      if (said != 0 && said != 1)
        rows.table.fail(formatted("{} is neither 0 nor 1", m.findings[k]),
                        "VinDr-CXR's readers say one of the two");
      m.labels[place->second * columns.size() + k] += said;
    }
  }
  if (m.size() > 0) decide_votes(votes, m);
}

}  // namespace chexnet
