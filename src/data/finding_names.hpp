// data.finding_names: our names for the findings of tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

// A CSV file with the header `name,finding`: a column called `name` in a table
// is about `finding`. Several names may be of one finding. DataError names file
// and line of an unreadable or contradictory entry.
class FindingNames {
 public:
  FindingNames() = default;
  FindingNames(const std::string& path, const S3Config& s3);

  // Renames the findings of a table whose cells hold what the table says (1, 0,
  // -1, NaN). Where several columns become one finding, a cell is 1 where any
  // says so, else uncertain where any is, else blank where any is, else 0.
  void apply(Manifest& table);

  // Names that no table had, of those looked up so far.
  std::vector<std::string> unused() const;
  // SHA-256 of the file's entries; empty without one.
  const std::string& sha256() const { return sha256_; }

 private:
  struct Entry {
    std::string name, finding;
    bool used = false;
  };
  std::vector<Entry> entries_;
  std::string sha256_;
};

}  // namespace chexnet
