#include "chexnet/eval/predictions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/auroc.hpp"

namespace chexnet {
namespace {

// The reason of an image whose table gives none.
constexpr const char* kNotScored = "not scored";

template <class Number>
std::string number_text(Number value) {
  if (std::isnan(value)) return "";
  std::array<char, 40> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

double logit(double p) {
  constexpr double kTiny = 1e-300;
  return std::log(std::max(p, kTiny)) - std::log(std::max(1 - p, kTiny));
}

using Columns = std::vector<std::size_t>;

// What an image shows about "some disease": 1, 0, or NaN when it is not known.
float any_disease(const float* labels, const Columns& diseases) {
  bool unknown = diseases.empty();
  for (const auto k : diseases) {
    if (labels[k] > 0.5f) return 1;
    unknown = unknown || std::isnan(labels[k]);
  }
  return unknown ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
}

std::optional<double> any_finding_auroc(const Predictions& p, const Columns& diseases) {
  const std::size_t findings = p.findings.size(), images = p.images.size();
  std::vector<double> means(images);
  std::vector<float> labels(images);
  for (std::size_t i = 0; i < images; ++i) {
    double total = 0;
    for (const auto k : diseases) total += logit(p.probabilities[i * findings + k]);
    means[i] = total / static_cast<double>(diseases.size());
    labels[i] = std::isnan(means[i]) ? std::numeric_limits<float>::quiet_NaN()  // not predicted
                                     : any_disease(&p.labels[i * findings], diseases);
  }
  return auroc(means, labels);
}

// The columns of a header by finding: "prob:Edema" is of Edema, before a plain "edema".
class ScoreColumns {
 public:
  explicit ScoreColumns(const std::vector<std::string>& header) : plain_(header) {
    for (const auto& name : header)
      named_.push_back(name.starts_with("prob:") ? name.substr(5) : "");
  }
  std::vector<std::string> findings() const {
    std::vector<std::string> found;
    std::ranges::copy_if(named_, std::back_inserter(found), [](auto& n) { return !n.empty(); });
    return found;
  }
  std::optional<std::size_t> of(const std::string& finding) const {
    const auto named = find_finding(named_, finding);
    return named ? named : find_finding(plain_, finding);
  }

 private:
  std::vector<std::string> named_, plain_;  // [column]
};

}  // namespace

Scores score(const Predictions& predictions, const std::vector<std::string>& wanted) {
  const std::size_t findings = predictions.findings.size();
  std::vector<std::size_t> scored;
  for (std::size_t i = 0; i < predictions.images.size(); ++i)
    if (predictions.scored(i)) scored.push_back(i);
  const std::size_t images = scored.size();
  Scores scores;
  scores.images = images;
  scores.not_scored = static_cast<std::size_t>(std::ranges::count(predictions.reasons, kNotScored));
  scores.damaged = predictions.images.size() - images - scores.not_scored;
  scores.findings = scored_findings(wanted, predictions.findings);
  std::vector<double> column(images);
  std::vector<float> labels(images);
  Columns diseases;
  for (const auto& name : scores.findings) {
    const auto k = static_cast<std::size_t>(std::ranges::find(predictions.findings, name) -
                                            predictions.findings.begin());
    for (std::size_t i = 0; i < images; ++i) {
      column[i] = predictions.probabilities[scored[i] * findings + k];
      labels[i] = predictions.labels[scored[i] * findings + k];
      if (column[i] < 0 || column[i] > 1) scores.probabilities = false;
    }
    scores.auroc.push_back(auroc(column, labels));
    scores.positives.push_back(static_cast<std::size_t>(std::ranges::count(labels, 1.0f)));
    if (is_disease(name)) diseases.push_back(k);
  }
  scores.mean_auroc = mean_auroc_with(scores, 0);
  if (scores.probabilities)
    scores.any_finding_auroc_mean_logit = any_finding_auroc(predictions, diseases);
  return scores;
}

std::string images_text(const Scores& scores) {
  const std::string scored = std::to_string(scores.images);
  const std::size_t left_out = scores.damaged + scores.not_scored;
  if (left_out == 0) return scored + " images";
  std::string text = scored + " of " + std::to_string(scores.images + left_out) + " images";
  if (scores.damaged > 0) text += ", " + std::to_string(scores.damaged) + " damaged";
  if (scores.not_scored > 0) text += ", " + std::to_string(scores.not_scored) + " not scored";
  return text;
}

std::vector<std::string> scored_findings(const std::vector<std::string>& asked,
                                         const std::vector<std::string>& known) {
  if (asked.empty()) return known;
  refuse_doubled(asked, "eval.findings");
  std::vector<std::string> scored;
  for (const auto& name : asked) {
    const auto found = find_finding(known, name);
    if (!found)
      throw ConfigError("[config] eval.findings: no finding '" + name + "'. Hint: nearest are " +
                        nearest_names(name, known));
    scored.push_back(known[*found]);
  }
  return scored;
}

std::optional<double> mean_auroc_with(const Scores& scores, std::size_t positives) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t k = 0; k < scores.auroc.size(); ++k) {
    if (!scores.auroc[k] || scores.positives[k] < positives) continue;
    if (is_no_finding(scores.findings[k])) continue;
    sum += *scores.auroc[k];
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::string predictions_csv(const Predictions& predictions) {
  const std::size_t findings = predictions.findings.size();
  std::string text = "image";
  for (const char* kind : {"label:", "prob:"})
    for (const auto& finding : predictions.findings) text += "," + csv_field(kind + finding);
  text += ",reason\n";
  for (std::size_t i = 0; i < predictions.images.size(); ++i) {
    text += csv_field(predictions.images[i]);
    for (std::size_t k = 0; k < findings; ++k)
      text += "," + number_text(predictions.labels[i * findings + k]);
    for (std::size_t k = 0; k < findings; ++k)
      text += "," + number_text(predictions.probabilities[i * findings + k]);
    text +=
        "," + (predictions.scored(i) ? std::string() : csv_field(predictions.reasons[i])) + "\n";
  }
  return text;
}

Predictions read_predictions(const std::string& path, const Manifest* manifest) {
  const std::string text = read_text(path);
  if (const std::size_t line = line_not_utf8(text); line > 0)
    throw DataError("[predictions] " + path + ":" + std::to_string(line) +
                    ": is not UTF-8. Hint: save the table as UTF-8");
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  const auto fail = [&](const std::string& what, const std::string& hint) {
    throw DataError("[predictions] " + path + ":" + std::to_string(csv.line()) + ": " +
                    printable(what + ". Hint: " + hint));  // a cell may hold a NUL
  };
  if (!csv.next(fields))
    fail("the file is empty", "a header line with 'image' and the findings is needed");
  std::vector<std::string> header;
  for (const auto f : fields) header.emplace_back(trimmed(f));
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  std::size_t image = 0;
  for (const char* name : {"image", "Image Index", "Path"})
    if (column(name) < header.size()) image = column(name);

  const std::size_t reason = column("reason");
  Predictions out;
  const ScoreColumns columns(header);
  if (const auto doubled = doubled_finding(columns.findings()); !doubled.empty())
    fail("finding " + doubled, "each finding has one column");
  if (manifest == nullptr && columns.findings().empty())
    fail("no column 'prob:<finding>'", "give --manifest for a table of another form");
  std::vector<std::size_t> scores, labels;    // columns of the table
  std::vector<std::size_t> manifest_columns;  // of its findings
  const auto wanted = manifest == nullptr ? columns.findings() : manifest->findings;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::string& finding = wanted[k];
    const auto at = columns.of(finding);
    if (!at) continue;
    scores.push_back(*at);
    out.findings.push_back(finding);
    manifest_columns.push_back(k);
    if (manifest == nullptr) {
      labels.push_back(column("label:" + finding));
      if (labels.back() == header.size())
        fail("no column 'label:" + finding + "'", "give --manifest, the table with the labels");
    }
  }
  if (scores.empty())
    fail("no column for a finding of " + manifest->path + " (" + listed(manifest->findings) + ")",
         "nearest are " + nearest_names(manifest->findings.front(), header));
  std::map<std::string, int, std::less<>> line_of;  // [image]
  const auto number = [&](std::string_view cell) {
    cell = trimmed(cell);
    double value = 0;
    const auto result = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (result.ec != std::errc() || result.ptr != cell.data() + cell.size())
      fail("'" + std::string(cell) + "' is not a number", "probabilities are plain decimals");
    return value;
  };
  while (csv.next(fields)) {
    if (fields.size() != header.size())
      fail("row has " + std::to_string(fields.size()) + " fields, the header " +
               std::to_string(header.size()),
           "the row is cut off");
    const std::string name(trimmed(fields[image]));
    const auto [first, is_new] = line_of.emplace(name, csv.line());
    if (!is_new)
      fail("the image of this row appears twice, first on line " + std::to_string(first->second),
           "remove one of the rows");
    out.images.push_back(name);
    const bool blank =
        std::ranges::all_of(scores, [&](std::size_t c) { return trimmed(fields[c]).empty(); });
    const bool explained = blank && reason < header.size() && !trimmed(fields[reason]).empty();
    out.reasons.emplace_back(explained ? std::string(trimmed(fields[reason]))
                                       : (blank ? kNotScored : ""));
    for (const std::size_t c : scores) {
      if (blank) {
        out.probabilities.push_back(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const double value = number(fields[c]);
      if (!std::isfinite(value))
        fail("a score is not finite", "the prediction of this row's image failed");
      out.probabilities.push_back(value);
    }
    if (manifest != nullptr) {
      const auto row = manifest->rows.find(name);
      if (row == manifest->rows.end())
        fail("the image of this row is not in " + manifest->path, "is it the right manifest?");
      const float* from = manifest->scored_row(row->second);
      for (const std::size_t k : manifest_columns) out.labels.push_back(from[k]);
    } else {
      for (const std::size_t c : labels)
        out.labels.push_back(trimmed(fields[c]).empty() ? std::numeric_limits<float>::quiet_NaN()
                                                        : static_cast<float>(number(fields[c])));
    }
  }
  if (out.images.empty()) fail("no rows below the header", "is the file complete?");
  if (std::ranges::none_of(out.reasons, &std::string::empty))
    fail("no image has a score", "the columns of probabilities are blank");
  return out;
}

}  // namespace chexnet
