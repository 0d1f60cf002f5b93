// Tables of separated columns (RFC 4180 quoting, LF or CRLF, optional UTF-8
// byte-order mark) read in one pass over a text that the caller keeps alive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chexnet {

class CsvReader {
 public:
  // `name`: the file's, for errors.
  CsvReader(std::string_view text, std::string name, char separator = ',');
  // Fills `fields` with the next record (views into the text, or into this
  // object for quoted fields, valid until the next call); false at the end.
  // Empty lines are skipped. DataError where a quote is not closed: all rows
  // after it would be one cell.
  bool next(std::vector<std::string_view>& fields);
  // 1-based line of the record that next() returned last.
  int line() const { return record_line_; }

 private:
  std::string_view rest_;
  std::string name_;
  char separator_;
  std::vector<std::string> unquoted_;
  int line_ = 1;
  int record_line_ = 1;
};

// Of a table that somebody saved: the comma, semicolon or tab that its first
// line has most of, outside of quotes and of brackets (NIH's "Bbox [x,y,w,h]").
// Spreadsheets of languages that write 0,5 save semicolons.
char separator_of(std::string_view text);

// Quotes a field when it holds a comma, quote or line break.
std::string csv_field(std::string_view text);

// The shortest text that reads back equal; NaN is empty.
std::string csv_number(float value);
std::string csv_number(double value);

// Trims blanks and carriage returns on both sides.
std::string_view trimmed(std::string_view text);

// The non-empty trimmed lines of a list file. With a NUL in it, as `find
// -print0` writes them, entries end by NULs and are taken as they are.
std::vector<std::string> list_lines(std::string_view text);

// Line (1-based) of the first byte that is not UTF-8; 0 when all of it is.
size_t line_not_utf8(std::string_view text);

}  // namespace chexnet
