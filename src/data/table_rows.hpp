// What the readers of all forms of tables share: errors with their line,
// columns by name, rows that take part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/manifest.hpp"
#include "row_choice.hpp"
#include "table_reader.hpp"

namespace chexnet {

struct Table {
  const std::string& path;
  int line = 1;
  // DataError.
  [[noreturn]] void fail(const std::string& what,
                         const std::string& hint) const;
};

// The file's text. DataError where it is not UTF-8, AbsentError, OutageError.
std::string utf8_table(const std::string& path, const S3Config& s3);

// The cells of the first line.
std::vector<std::string> read_header(
    const std::vector<std::string_view>& fields, const Table& table);

// A label cell: 1, 0, -1 or blank.
float parse_label(std::string_view cell, const Table& table,
                  const std::string& finding);
// NaN where it is none.
float parse_age(std::string_view cell);

// A remedy where a column that a format needs is not there.
inline constexpr const char* kOtherLayout =
    ". A table of another layout: --set data.manifest.format=csv";
// DataError where the table has no such column, or two; `remedy` ends its hint.
size_t column(const std::vector<std::string>& header, const std::string& name,
              const Table& table, const std::string& remedy = {});
// npos for no name, or where the table lacks it.
size_t optional_column(const std::vector<std::string>& header,
                       const std::string& name, const Table& table);

// A table below its header, row by row, each as wide as the header.
class TableRows {
 public:
  // `text` and `path` must outlive it. DataError: empty, or no such header.
  TableRows(const std::string& text, const std::string& path);
  bool next();
  // DataError where there is none.
  size_t column(const std::string& name) const;
  std::string_view cell(size_t column) const;  // trimmed; empty for npos

  std::vector<std::string> header;
  std::vector<std::string_view> fields;
  Table table;

 private:
  CsvReader csv_;
};

// Takes every column but `others` as a finding; their indexes, [K]. DataError
// with `hint` where none is left.
std::vector<size_t> take_findings(const TableRows& rows,
                                  const std::vector<size_t>& others,
                                  const std::string& hint, Manifest& m);
// DataError where a finding has two columns, or with `hint` where there is
// none.
void check_findings(const Table& table, const std::string& hint,
                    const Manifest& m);

// Whether the row takes part.
bool add_row(Manifest& m, const Table& table, RowChoice& choice,
             const std::vector<std::string_view>& fields,
             std::string_view image, std::string_view patient);

// What a table knows of an image besides its labels.
struct KnownOfImage {
  float age;  // NaN = unknown
  std::string_view sex = {}, view = {}, study = {};
};
void push_known(const KnownOfImage& image, Manifest& m);

// The row's weight from column `weight`, if the table has it.
void push_weight(const std::vector<std::string_view>& fields, size_t weight,
                 const Table& table, const TableFile& file, Manifest& m);

// Logs why a table leaves images out whatever the config says.
void log_left_out(const Manifest& m, int64_t images, const std::string& why);

// The forms of tables: `text` is the table, `m` has its path.
void read_nih(const std::string& text, const TableFile& file, RowChoice& choice,
              Manifest& m);
// Joins the labels of studies with the tables of views and of splits that lie
// beside them.
void read_mimic_cxr(const std::string& text, const TableFile& file,
                    const S3Config& s3, RowChoice& choice, Manifest& m);
void read_padchest(const std::string& text, const TableFile& file,
                   RowChoice& choice, Manifest& m);
// A row for each reader of an image: the majority's labels.
void read_vindr(const std::string& text, const TableFile& file,
                RowChoice& choice, Manifest& m);
// One column per finding: CheXpert's, BRAX's and anybody's.
void read_columns(const std::string& text, const TableFile& file, bool may_lack,
                  RowChoice& choice, Manifest& m);

}  // namespace chexnet
