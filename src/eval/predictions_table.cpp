// Reading a table of predictions, our own or anybody's.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/column_limit.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {
namespace {

// What follows one of `prefixes` in the name of a column: [column], ""
// elsewhere.
std::vector<std::string> findings_after(
    const std::vector<std::string>& header,
    std::initializer_list<std::string_view> prefixes) {
  std::vector<std::string> findings(header.size());
  for (size_t c = 0; c < header.size(); ++c)
    for (const auto prefix : prefixes)
      if (header[c].starts_with(prefix))
        findings[c] = header[c].substr(prefix.size());
  return findings;
}

std::vector<std::string> not_empty(std::vector<std::string> names) {
  std::erase(names, "");
  return names;
}

// Reads one table, row by row. Labels come from the table itself, or from a
// manifest by the image's name. A column that counts is there once; others
// may be there as often as they like.
class TableReader {
 public:
  TableReader(const std::string& path, const std::string& text,
              const Manifest* manifest)
      : path_(path),
        manifest_(manifest),
        csv_(text, path, separator_of(text)) {}

  Predictions read() {
    read_header();
    find_columns();
    while (csv_.next(fields_)) read_row();
    if (left_out_ > 0) tell_left_out();
    if (out_.images.empty())
      fail("no rows below the header", "is the file complete?");
    if (std::ranges::none_of(out_.reasons, &std::string::empty))
      fail("no image has a score", "the columns of probabilities are blank");
    if (other_labels_ > 0)
      log_warning("[predictions] " + path_ + ": " +
                  counted(other_labels_, "label") + " of its own differ from " +
                  manifest_->path + ", whose labels count; first " +
                  first_other_ +
                  ". Hint: another release of the table, or rows of other "
                  "images?");
    return std::move(out_);
  }

 private:
  // A cell may hold a NUL.
  [[noreturn]] void fail(const std::string& what,
                         const std::string& hint) const {
    throw DataError(
        "[predictions] {}:{}: {}", path_, csv_.line(),
        printable(formatted("{}. Hint: {}", shortened(what, kLongestError / 4),
                            shortened(hint, kLongestError / 4))));
  }

  // The one column that has one of `names`: of two nobody can tell which
  // counts.
  std::optional<size_t> column(
      std::initializer_list<std::string_view> names) const {
    std::optional<size_t> found;
    for (size_t c = 0; c < header_.size(); ++c) {
      if (std::ranges::find(names, header_[c]) == names.end()) continue;
      if (found) fail_doubled(header_[*found], header_[c]);
      found = c;
    }
    return found;
  }

  // A table of all images may be held against one of the test images.
  void tell_left_out() const {
    const std::string& of = manifest_->path;
    if (out_.images.empty())
      fail("none of its images is in " + of + ", as " + first_left_out_,
           "is it the right manifest?");
    log_warning("[predictions] " + path_ + ": " +
                counted(static_cast<int64_t>(left_out_), "image") + " not in " +
                of + " and left out; first " + first_left_out_ +
                ". Hint: is it the right manifest?");
  }

  [[noreturn]] void fail_doubled(const std::string& a,
                                 const std::string& b) const {
    const std::string what =
        a == b ? "column '" + a + "' is in the header twice"
               : "columns '" + a + "' and '" + b + "' are both in the header";
    fail(what, "nobody can tell which one counts: rename or remove one");
  }

  void refuse_doubled_findings(const std::vector<std::string>& names,
                               const std::string& of_what) const {
    if (const auto doubled = doubled_finding(names); !doubled.empty())
      fail("finding " + doubled, "each finding has one column of " + of_what);
  }

  void read_header() {
    if (!csv_.next(fields_))
      fail("the file is empty",
           "a header line with 'image' and the findings is needed");
    if (fields_.size() > kMostColumns)
      fail(formatted("the header has {} columns, more than {}", fields_.size(),
                     kMostColumns),
           "is this a table of probabilities?");
    for (const auto f : fields_) header_.emplace_back(trimmed(f));
    image_ = column({"image", "Image Index", "Path"}).value_or(0);
    reason_ = column({"reason"});
    by_ = column({"by"});
  }

  void find_columns() {
    const auto probabilities = findings_after(header_, {"prob:", "prob_"});
    const auto own = not_empty(probabilities);
    refuse_doubled_findings(own, "probabilities");
    refuse_doubled_findings(not_empty(findings_after(header_, {"label:"})),
                            "labels");
    if (manifest_ == nullptr && own.empty())
      fail("no column 'prob:<finding>'",
           "give --manifest for a table of another form");
    const auto& wanted = manifest_ == nullptr ? own : manifest_->findings;
    for (size_t k = 0; k < wanted.size(); ++k) {
      const auto at = score_column(wanted[k], probabilities);
      if (!at) continue;
      scores_.push_back(*at);
      out_.findings.push_back(wanted[k]);
      manifest_columns_.push_back(k);
      labels_.push_back(column({"label:" + wanted[k]}));
      if (manifest_ == nullptr && !labels_.back())
        fail("no column 'label:" + wanted[k] + "'",
             "give --manifest, the table with the labels");
    }
    if (scores_.empty())
      fail(
          formatted("no column for a finding of {} ({})", manifest_->path,
                    listed(manifest_->findings)),
          "nearest are " + nearest_names(manifest_->findings.front(), header_));
  }

  // "prob:Edema" is of Edema, before a plain "edema".
  std::optional<size_t> score_column(
      const std::string& finding,
      const std::vector<std::string>& probabilities) const {
    if (const auto named = find_finding(probabilities, finding)) return named;
    std::vector<std::string> plain;
    std::ranges::copy_if(header_, std::back_inserter(plain), [&](auto& name) {
      return same_finding(name, finding);
    });
    refuse_doubled_findings(plain, "probabilities");
    return find_finding(header_, finding);
  }

  void read_row() {
    if (fields_.size() != header_.size())
      fail(formatted("row has {}, the header {}",
                     counted(std::ssize(fields_), "field"), header_.size()),
           "the row is cut off");
    const std::string name(trimmed(fields_[image_]));
    const auto [first, is_new] = line_of_.emplace(name, csv_.line());
    if (!is_new)
      fail(formatted("the image of this row appears twice, first on line {}",
                     first->second),
           "remove one of the rows");
    std::optional<size_t> row;
    if (manifest_ != nullptr) {
      row = manifest_row(name);
      if (!row) return leave_out(name);
    }
    out_.images.push_back(row ? manifest_->images[*row] : name);

    const bool blank = std::ranges::all_of(
        scores_, [&](size_t c) { return trimmed(fields_[c]).empty(); });
    out_.reasons.push_back(blank ? reason() : "");
    for (const size_t c : scores_)
      out_.probabilities.push_back(blank ? kNaN : score(c));
    if (by_) read_by();
    if (row) add_patient(*row);
    // No row of the manifest has a study's labels.
    if (row && out_.by == ScoredBy::kImage)
      add_labels_of_manifest(*row);
    else
      add_labels_of_row();
  }

  // What the rows are of, as our tables of studies and patients say.
  void read_by() {
    const auto by = find_choice<ScoredBy>(std::string(trimmed(fields_[*by_])));
    if (!by || (out_.images.size() > 1 && out_.by != *by))
      fail("column 'by' does not say study, or patient, in each row",
           "rename the column if it is of something else");
    out_.by = *by;
  }

  void leave_out(const std::string& image) {
    if (left_out_++ == 0) first_left_out_ = image;
  }

  // Why the present row has no scores.
  std::string reason() const {
    if (!reason_ || trimmed(fields_[*reason_]).empty()) return kNotScored;
    return std::string(trimmed(fields_[*reason_]));
  }

  double number(std::string_view cell) const {
    cell = trimmed(cell);
    const auto value = parsed_number<double>(cell);
    if (!value)
      fail("'" + std::string(cell) + "' is not a number",
           "probabilities are decimals with a point");
    return *value;
  }

  double score(size_t column) const {
    const double value = number(fields_[column]);
    if (!std::isfinite(value))
      fail("a score is not finite",
           "the prediction of this row's image failed");
    return value;
  }

  // None where the manifest does not ask for the image.
  // `predict` names images by paths. Where the manifest has less of a path, or
  // more, the image is the only one whose path ends as this one does, or the
  // other way round.
  std::optional<size_t> manifest_row(const std::string& image) {
    const auto same = manifest_->rows.find(image);
    const std::optional<size_t> row =
        same != manifest_->rows.end() ? same->second : row_by_end(image);
    if (!row) return row;
    const auto [taken, is_new] = line_of_row_.emplace(*row, csv_.line());
    if (!is_new)
      fail(formatted("this row is of the same image as line {}", taken->second),
           "remove one of the rows");
    return row;
  }

  std::optional<size_t> row_by_end(const std::string& image) {
    if (by_file_name_.empty())
      for (const auto& [name, row] : manifest_->rows)
        by_file_name_.emplace(file_name(name), row);
    std::optional<size_t> found;
    const auto [first, last] = by_file_name_.equal_range(file_name(image));
    for (auto at = first; at != last; ++at) {
      const std::string& name = manifest_->images[at->second];
      if (!ends_as(image, name) && !ends_as(name, image)) continue;
      if (found)
        fail(formatted("'{}' may be '{}' or '{}' of {}", image,
                       manifest_->images[*found], name, manifest_->path),
             "write the image's name as the manifest has it");
      found = at->second;
    }
    return found;
  }

  static std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
  }

  // "in/a/x.png" ends as "a/x.png" does, and "xa/x.png" does not.
  static bool ends_as(std::string_view path, std::string_view end) {
    return path.ends_with(end) && path.size() > end.size() &&
           path[path.size() - end.size() - 1] == '/';
  }

  void add_patient(size_t row) {
    if (manifest_->knows_patients && !manifest_->patients.empty())
      out_.patients.push_back(manifest_->patients[row]);
  }

  void add_labels_of_manifest(size_t row) {
    const float* from = manifest_->scored_row(row);
    for (size_t i = 0; i < manifest_columns_.size(); ++i) {
      const float wanted = from[manifest_columns_[i]];
      out_.labels.push_back(wanted);
      if (labels_[i]) compare_with_own(*labels_[i], wanted);
    }
  }

  // What is blank or uncertain in either says nothing.
  void compare_with_own(size_t column, float wanted) {
    const float own = label(column);
    if (own == wanted || std::isnan(own) || std::isnan(wanted)) return;
    if (other_labels_++ == 0)
      first_other_ = header_[column] + " of " + out_.images.back();
  }

  void add_labels_of_row() {
    for (const auto& c : labels_) {
      if (!c)
        fail("a table of studies or patients needs columns 'label:'",
             "take the one that the program wrote");
      out_.labels.push_back(label(*c));
    }
  }

  // Uncertain is not labeled here: policies are for a table of labels.
  float label(size_t column) const {
    const std::string_view cell = trimmed(fields_[column]);
    const double value = cell.empty() ? kNaN : number(cell);
    if (value == 1 || value == 0) return static_cast<float>(value);
    if (!std::isnan(value) && value != -1)
      fail(formatted("'{}' in column {} is not 1, 0, -1 or blank", cell,
                     header_[column]),
           "probabilities are in columns prob:FINDING");
    return static_cast<float>(kNaN);
  }

  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

  const std::string& path_;
  const Manifest* manifest_;  // null: the table has the labels
  CsvReader csv_;
  std::vector<std::string_view> fields_;  // of the present row
  std::vector<std::string> header_;
  size_t image_ = 0;  // a column, as are those that follow
  std::optional<size_t> reason_, by_;
  // By finding of `out_`; with a manifest the table need not have labels.
  std::vector<size_t> scores_;
  std::vector<std::optional<size_t>> labels_;
  // Findings of the manifest, the same way.
  std::vector<size_t> manifest_columns_;
  std::map<std::string, int, std::less<>> line_of_;  // [image]
  // Rows of the manifest: by file name, once a name needs it; those met.
  std::multimap<std::string_view, size_t> by_file_name_;
  std::map<size_t, int> line_of_row_;
  size_t left_out_ = 0;  // images that the manifest does not have
  std::string first_left_out_;
  size_t other_labels_ = 0;  // than the manifest's
  std::string first_other_;
  Predictions out_;
};

}  // namespace

Predictions read_predictions(const std::string& path,
                             const Manifest* manifest) {
  const std::string text = read_text(path);
  if (const size_t line = line_not_utf8(text); line > 0)
    throw DataError(
        "[predictions] {}:{}: is not UTF-8. Hint: save the table as UTF-8",
        path, line);
  return TableReader(path, text, manifest).read();
}

bool has_labels(const std::string& path) {
  const std::string text = read_text(path);
  return text.substr(0, text.find('\n')).find("label:") != std::string::npos;
}

}  // namespace chexnet
