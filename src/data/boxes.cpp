// The header's third name holds commas, "Bbox [x,y,w,h]", so it splits into
// four fields, as a row's box does; it is one where columns are separated by
// something else. NIH's file has three more commas at the end.
#include "chexnet/data/boxes.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/table_text.hpp"

namespace chexnet {
namespace {

constexpr size_t kFields = 6;

[[noreturn]] void fail(const std::string& path, int line,
                       const std::string& what, const std::string& hint) {
  throw DataError("[boxes] {}:{}: {}", path, line,
                  printable(formatted("{}. Hint: {}", what, hint)));
}

bool is_header(const std::vector<std::string_view>& fields) {
  return fields.size() > 2 && trimmed(fields[0]) == "Image Index" &&
         trimmed(fields[1]) == "Finding Label" &&
         trimmed(fields[2]).starts_with("Bbox [x");
}

}  // namespace

std::vector<FindingBox> read_boxes(const std::string& path,
                                   const S3Config& s3) {
  const std::string text = table_text(path, s3);
  if (const auto line = line_not_utf8(text); line > 0)
    fail(path, static_cast<int>(line), "the text is not UTF-8",
         "is this a list of boxes?");
  CsvReader csv(text, path, separator_of(text));
  std::vector<std::string_view> fields;
  if (!csv.next(fields) || !is_header(fields))
    fail(path, 1, "this is no list of boxes",
         "NIH's begins with Image Index,Finding Label,Bbox [x,y,w,h]");

  std::vector<FindingBox> boxes;
  while (csv.next(fields)) {
    if (fields.size() < kFields)
      fail(path, csv.line(),
           formatted("the row has {}, not 6",
                     counted(std::ssize(fields), "field")),
           "the row is damaged or cut off");
    std::array<double, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::string_view cell = trimmed(fields[2 + i]);
      const auto number = parsed_number<double>(cell);
      if (!number || !std::isfinite(*number))
        fail(path, csv.line(), "'" + std::string(cell) + "' is no number",
             "x, y, width and height in pixels");
      numbers[i] = *number;
    }
    FindingBox box{std::string(trimmed(fields[0])),
                   std::string(trimmed(fields[1])),
                   numbers[0],
                   numbers[1],
                   numbers[2],
                   numbers[3],
                   csv.line()};
    if (box.image.empty() || box.finding.empty())
      fail(path, csv.line(), "the row names no image or no finding",
           "the row is damaged");
    if (box.width <= 0 || box.height <= 0)
      fail(path, csv.line(), "the box has no area",
           "width and height are more than 0");
    boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace chexnet
