// Several tables as one manifest, and where its rows stand in them.
#include <algorithm>
#include <iterator>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {
namespace {

// Adds the rows of another table with the same findings.
void append(Manifest& m, const Manifest& more) {
  for (std::size_t row = 0; row < more.size(); ++row) {
    const auto [first, is_new] = m.rows.emplace(
        more.images[row], static_cast<std::uint32_t>(m.size() + row));
    if (!is_new)
      throw DataError("[manifest] " + more.place(row) +
                      ": the image of this row is also in " +
                      m.place(first->second) +
                      ". Hint: name each image in one table only");
  }
  m.tables.push_back({more.path, m.size()});
  if (m.scored.empty() && !more.scored.empty()) m.scored = m.labels;
  if (!m.scored.empty()) {
    const auto& scored = more.scored.empty() ? more.labels : more.scored;
    m.scored.insert(m.scored.end(), scored.begin(), scored.end());
  }
  const auto add = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(m.labels, more.labels);
  add(m.lines, more.lines);
  add(m.images, more.images);
  add(m.patients, more.patients);
  add(m.ages, more.ages);
  add(m.sexes, more.sexes);
  add(m.views, more.views);
  m.path += ", " + more.path;
  m.sha256 = sha256_hex(m.sha256 + more.sha256);
  m.knows_patients = m.knows_patients && more.knows_patients;
}

}  // namespace

std::string Manifest::place(std::size_t row) const {
  if (lines.empty()) return "row " + std::to_string(row + 1) + " of " + path;
  const auto next =
      std::ranges::upper_bound(tables, row, {}, &Table::first_row);
  return std::prev(next)->path + ":" + std::to_string(lines[row]);
}

Manifest read_tables(DataConfig config, const std::vector<std::string>& paths,
                     const EvalConfig& eval) {
  Manifest all;
  for (const auto& path : paths) {
    config.manifest.path = path;
    Manifest m = read_manifest(config, eval);
    if (all.size() == 0) {
      all = std::move(m);
      continue;
    }
    if (m.findings != all.findings)
      throw DataError(
          "[manifest] " + path + ": its findings are " + listed(m.findings) +
          ", those of " + all.path + " " + listed(all.findings) +
          ". Hint: tables that are read together have the same columns");
    append(all, m);
  }
  return all;
}

}  // namespace chexnet
