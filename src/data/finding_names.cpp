#include "finding_names.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/table_text.hpp"
#include "labels.hpp"

namespace chexnet {
namespace {

// Of two columns about one finding.
float either(float a, float b) {
  if (a == 1 || b == 1) return 1;
  if (a == kUncertain || b == kUncertain) return kUncertain;
  return std::isnan(a) || std::isnan(b) ? kUnlabeled : 0.0f;
}

}  // namespace

FindingNames::FindingNames(const std::string& path, const S3Config& s3) {
  if (path.empty()) return;
  const std::string text = table_text(path, s3);
  CsvReader csv(text, path, separator_of(text));
  std::vector<std::string_view> fields;
  const auto fail = [&](const std::string& what) {
    throw DataError("[manifest] {}:{}: {}", path, csv.line(),
                    printable(formatted(
                        "{}. Hint: a line is a name of the table and a "
                        "finding, as in 'Pleural Effusion,Effusion', below the "
                        "header 'name,finding'",
                        what)));
  };
  const bool has_header = csv.next(fields);
  if (!has_header || fields.size() != 2 || trimmed(fields[0]) != "name" ||
      trimmed(fields[1]) != "finding")
    fail("no header 'name,finding'");
  std::string meaning;
  while (csv.next(fields)) {
    if (fields.size() != 2) fail("not two fields");
    Entry entry{std::string(trimmed(fields[0])),
                std::string(trimmed(fields[1]))};
    if (entry.name.empty() || entry.finding.empty()) fail("an empty name");
    if (std::ranges::find(entries_, entry.name, &Entry::name) != entries_.end())
      fail("'" + entry.name + "' appears twice");
    meaning += escaped(entry.name) + "\t" + escaped(entry.finding) + "\n";
    entries_.push_back(std::move(entry));
  }
  sha256_ = sha256_hex(meaning);
}

void FindingNames::apply(Manifest& table) {
  if (entries_.empty()) return;
  std::vector<std::string> findings;
  std::vector<size_t> to;  // [K] column of the renamed table
  for (const auto& name : table.findings) {
    const auto entry = std::ranges::find(entries_, name, &Entry::name);
    if (entry != entries_.end()) entry->used = true;
    const std::string& finding =
        entry == entries_.end() ? name : entry->finding;
    const auto known = find_finding(findings, finding);
    to.push_back(known.value_or(findings.size()));
    if (!known) findings.push_back(finding);
  }
  std::vector<float> labels;
  labels.reserve(table.size() * findings.size());
  const size_t width = table.finding_count();
  for (size_t row = 0; row < table.size(); ++row) {
    const size_t at = labels.size();
    std::vector<bool> is_set(findings.size());
    labels.resize(at + findings.size());
    for (size_t k = 0; k < width; ++k) {
      float& cell = labels[at + to[k]];
      const float said = table.labels[row * width + k];
      cell = is_set[to[k]] ? either(cell, said) : said;
      is_set[to[k]] = true;
    }
  }
  table.labels = std::move(labels);
  table.findings = std::move(findings);
}

std::vector<std::string> FindingNames::unused() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    if (!entry.used) names.push_back(entry.name);
  return names;
}

}  // namespace chexnet
