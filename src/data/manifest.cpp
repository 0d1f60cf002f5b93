// Tables are read one after the other, each with the policies of its format;
// then all get the same columns of findings and become one.
#include "chexnet/data/manifest.hpp"

#include <algorithm>
#include <iterator>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "finding_names.hpp"
#include "labels.hpp"
#include "table_reader.hpp"

namespace chexnet {
namespace {

std::vector<TableFile> table_files(const DataConfig& data) {
  const ManifestConfig& config = data.manifest;
  const size_t count = config.path.size();
  const auto refuse = [&](const std::string& key, size_t values,
                          const std::string& hint) {
    throw ConfigError(
        "[config] data.manifest.{}: {} values for {} tables "
        "(data.manifest.path). Hint: {}",
        key, values, count, hint);
  };
  if (config.format.size() != 1 && config.format.size() != count)
    refuse("format", config.format.size(),
           "one for all tables, or one for each");
  if (!config.split.empty() && config.split.size() != count)
    refuse("split", config.split.size(), "one for each table, or none");
  std::vector<TableFile> files;
  for (size_t i = 0; i < count; ++i) {
    TableFile file{config.path[i],
                   config.format[config.format.size() == 1 ? 0 : i],
                   config.columns,
                   {},
                   data.sample_weight};
    if (!config.split.empty()) file.split = config.split[i];
    files.push_back(std::move(file));
  }
  return files;
}

// The findings of all tables, each under the first name that it has.
std::vector<std::string> union_of(const std::vector<Manifest>& tables) {
  std::vector<std::string> all;
  for (const auto& table : tables)
    for (const auto& name : table.findings)
      if (!find_finding(all, name)) all.push_back(name);
  return all;
}

// Columns that the config names and no table has.
void require_columns(const ManifestConfig& config,
                     const std::vector<Manifest>& tables) {
  const bool has_csv = std::ranges::find(config.format, ManifestFormat::kCsv) !=
                       config.format.end();
  if (tables.size() < 2 || !has_csv) return;
  for (const auto& name : config.columns.findings) {
    const bool is_there = std::ranges::any_of(tables, [&](const Manifest& t) {
      return std::ranges::find(t.findings, name) != t.findings.end();
    });
    if (!is_there)
      throw DataError(
          "[manifest] no table has the column '{}'. Hint: see "
          "data.manifest.columns.findings; nearest are {}",
          name, nearest_names(name, union_of(tables)));
  }
}

// 1 in the tables that lack the column, where others have it.
void fill_weights(const std::string& column, std::vector<Manifest>& tables) {
  const auto has_it = [](const Manifest& t) {
    return !t.sample_weights.empty();
  };
  if (std::ranges::none_of(tables, has_it)) return;
  for (auto& table : tables)
    if (!has_it(table)) {
      log_info(table.path + " has no column " + column +
               ": its rows have the weight 1");
      table.sample_weights.assign(table.size(), 1.0f);
    }
}

// Those of data.findings, or all.
std::vector<std::string> chosen_findings(const std::vector<std::string>& wanted,
                                         const std::vector<std::string>& known,
                                         const std::string& path) {
  if (wanted.empty()) return known;
  refuse_doubled(wanted, "data.findings");
  for (const auto& name : wanted)
    if (!find_finding(known, name))
      throw ConfigError(
          "[config] data.findings: {} has no finding '{}'. Hint: nearest are "
          "{}",
          path, name, nearest_names(name, known));
  return wanted;
}

// Adds the rows of another table with the same columns of findings.
void append(Manifest& m, const Manifest& more) {
  for (size_t row = 0; row < more.size(); ++row) {
    const auto [first, is_new] =
        m.rows.emplace(more.images[row], static_cast<uint32_t>(m.size() + row));
    if (!is_new)
      throw DataError(
          "[manifest] {}: the image of this row is also in {}. Hint: name each "
          "image in one table only",
          more.place(row), m.place(first->second));
  }
  for (auto table : more.tables) {
    table.first_row += m.size();
    m.tables.push_back(std::move(table));
  }
  m.left_out.insert(more.left_out.begin(), more.left_out.end());
  if (m.scored.empty() && !more.scored.empty()) m.scored = m.labels;
  if (!m.scored.empty()) {
    const auto& scored = more.scored.empty() ? more.labels : more.scored;
    m.scored.insert(m.scored.end(), scored.begin(), scored.end());
  }
  const auto add = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  if (!m.uncertain.empty() || !more.uncertain.empty()) {
    m.uncertain.resize(m.labels.size());
    add(m.uncertain, more.uncertain);
    m.uncertain.resize(m.labels.size() + more.labels.size());
  }
  if (!m.splits.empty() || !more.splits.empty()) {
    m.splits.resize(m.size());
    add(m.splits, more.splits);
    m.splits.resize(m.size() + more.size());
  }
  add(m.labels, more.labels);
  add(m.lines, more.lines);
  add(m.images, more.images);
  add(m.patients, more.patients);
  add(m.sample_weights, more.sample_weights);
  add(m.ages, more.ages);
  add(m.sexes, more.sexes);
  add(m.views, more.views);
  add(m.studies, more.studies);
  m.path += ", " + more.path;
  m.sha256 = sha256_hex(m.sha256 + more.sha256);
  m.knows_patients = m.knows_patients && more.knows_patients;
}

// A model file with such names is refused when it is read: that must not come
// to light after the training.
void refuse_unreadable(const std::vector<std::string>& findings,
                       const std::string& path) {
  for (const auto& name : findings)
    if (name.empty() || printable(name) != name)
      throw DataError(
          "[manifest] {}: the finding '{}' has {}. Hint: rename the column, or "
          "leave it out by data.findings; a line end counts as one",
          path, printable(name),
          name.empty() ? "no name" : "control characters");
}

// Which findings a part of the tables is silent about.
void say_what_is_missing(const std::vector<Manifest>& tables,
                         const std::vector<std::string>& findings) {
  for (const auto& table : tables) {
    std::vector<std::string> missing;
    for (const auto& name : findings)
      if (!find_finding(table.findings, name)) missing.push_back(name);
    if (!missing.empty())
      log_info(table.path + " has no labels of " + listed(missing) +
               ": its images do not count for them");
  }
}

std::vector<Manifest> read_all(const DataConfig& config) {
  const auto files = table_files(config);
  RowChoice choice(config);
  std::vector<Manifest> tables;
  for (const auto& file : files)
    tables.push_back(read_table(file, files.size() > 1, config.s3, choice));
  choice.finish();
  require_columns(config.manifest, tables);
  fill_weights(config.sample_weight, tables);
  FindingNames names(config.finding_names, config.s3);
  for (auto& table : tables) {
    names.apply(table);
    table.finding_names_sha256 = names.sha256();
  }
  if (const auto unused = names.unused(); !unused.empty())
    log_info("data.finding_names: no table has " + listed(unused));
  return tables;
}

}  // namespace

const std::vector<std::string>& nih_findings() {
  static const std::vector<std::string> names = {"Atelectasis",
                                                 "Cardiomegaly",
                                                 "Effusion",
                                                 "Infiltration",
                                                 "Mass",
                                                 "Nodule",
                                                 "Pneumonia",
                                                 "Pneumothorax",
                                                 "Consolidation",
                                                 "Edema",
                                                 "Emphysema",
                                                 "Fibrosis",
                                                 "Pleural_Thickening",
                                                 "Hernia"};
  return names;
}

const std::vector<std::string>& chexpert_findings() {
  static const std::vector<std::string> names = {
      "No Finding",       "Enlarged Cardiomediastinum",
      "Cardiomegaly",     "Lung Opacity",
      "Lung Lesion",      "Edema",
      "Consolidation",    "Pneumonia",
      "Atelectasis",      "Pneumothorax",
      "Pleural Effusion", "Pleural Other",
      "Fracture",         "Support Devices"};
  return names;
}

std::string Manifest::place(size_t row) const {
  if (lines.empty()) return "row " + std::to_string(row + 1) + " of " + path;
  const auto next =
      std::ranges::upper_bound(tables, row, {}, &Table::first_row);
  return std::prev(next)->path + ":" + std::to_string(lines[row]);
}

Manifest read_manifest(const DataConfig& config, const EvalConfig& eval) {
  std::vector<Manifest> tables = read_all(config);
  const auto known = union_of(tables);
  const auto& formats = config.manifest.format;
  std::string path;
  for (size_t i = 0; i < tables.size(); ++i) {
    apply_policies(tables[i], formats[formats.size() == 1 ? 0 : i], config,
                   eval, known);
    path += (i > 0 ? ", " : "") + tables[i].path;
  }
  const auto findings = chosen_findings(config.findings, known, path);
  refuse_unreadable(findings, path);
  if (tables.size() > 1) say_what_is_missing(tables, findings);
  Manifest all;
  for (size_t i = 0; i < tables.size(); ++i) {
    match_findings(tables[i], findings);
    if (i == 0)
      all = std::move(tables[i]);
    else
      append(all, tables[i]);
  }
  all.s3 = config.s3;
  if (all.size() == 0)
    throw DataError(
        "[manifest] {}: no row is left by data.filter and data.exclude. Hint: "
        "look at the table's columns",
        path);
  return all;
}

}  // namespace chexnet
