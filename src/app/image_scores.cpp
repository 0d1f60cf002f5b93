#include "image_scores.hpp"

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"

namespace chexnet {
namespace {

constexpr size_t kHighest = 3;

template <class Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

ImageScoreRows::ImageScoreRows(std::vector<std::string> findings,
                               std::optional<Decisions> decisions,
                               size_t name_width, bool is_ensemble)
    : findings_(std::move(findings)),
      decisions_(std::move(decisions)),
      name_width_(name_width),
      is_ensemble_(is_ensemble) {
  assert(!decisions_ || decisions_->rules.size() == findings_.size());
}

std::optional<double> ImageScoreRows::calibrated_probability(
    const ImageScore& image, size_t k) const {
  return calibrated(decisions_->rules[k], decisions_->calibration,
                    image.probabilities[k]);
}

std::optional<double> ImageScoreRows::threshold(size_t k) const {
  return decisions_ ? decisions_->rules[k].threshold(decisions_->rule)
                    : std::nullopt;
}

std::optional<bool> ImageScoreRows::is_positive(const ImageScore& image,
                                                size_t k) const {
  const auto least = threshold(k);
  if (!least) return std::nullopt;
  return image.probabilities[k] >= *least;
}

// "Effusion 0.812*  Mass 0.301  Nodule 0.204"; first what is called positive,
// then by probability; of equal ones the first finding.
std::string ImageScoreRows::highest(const ImageScore& image) const {
  std::vector<size_t> order(findings_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto called = [&](size_t k) {
    return is_positive(image, k).value_or(false);
  };
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t k) {
    return std::pair(called(k), image.probabilities[k]);
  });
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t k = order[i];
    if (i >= kHighest && !called(k)) break;
    text += (text.empty() ? "" : "  ") + findings_[k] + " " +
            fixed(image.probabilities[k], 3) + (called(k) ? "*" : "");
  }
  return text;
}

std::string ImageScoreRows::text_heading() const {
  std::string text = decisions_ ? "What is called positive, else the" : "The";
  text += " highest probabilities, of " +
          counted(std::ssize(findings_), "finding") +
          " (research use, not a medical device)\n";
  if (decisions_)
    text += "* = positive: at least the finding's threshold (" +
            decisions_->rule + ", chosen on validation)\n";
  return text;
}

std::vector<std::string> ImageScoreRows::limits_of_thresholds() const {
  std::vector<std::string> none, rough, sentences;
  for (size_t k = 0; decisions_ && k < findings_.size(); ++k) {
    if (!threshold(k))
      none.push_back(findings_[k]);
    else if (decisions_->rules[k].few_positives())
      rough.push_back(findings_[k]);
  }
  if (!none.empty())
    sentences.push_back("without a threshold, so never called: " +
                        listed(none));
  if (!rough.empty())
    sentences.push_back(
        "rough thresholds, chosen on fewer than ten positives: " +
        listed(rough));
  return sentences;
}

std::string ImageScoreRows::text(const ImageScore& image) const {
  std::string name = printable(image.image);
  name.resize(std::max(name.size(), name_width_), ' ');
  return "  " + name + "  " +
         (image.error.empty() ? highest(image)
                              : "error: " + printable(image.error)) +
         (image.note.empty() ? "" : "  (note: " + printable(image.note) + ")") +
         "\n";
}

std::string ImageScoreRows::csv_heading() const {
  std::string text = "image";
  const auto add = [&](const std::string& what) {
    for (const auto& finding : findings_)
      text += "," + csv_field(what + ":" + finding);
  };
  add("prob");
  if (decisions_) {
    add("calibrated");
    add("positive");
  }
  if (is_ensemble_) add("spread");
  return text + ",error,note\n";
}

std::string ImageScoreRows::csv(const ImageScore& image) const {
  std::string text = csv_field(image.image);
  const auto add = [&](const auto& cell) {
    for (size_t k = 0; k < findings_.size(); ++k)
      text += "," + (image.error.empty() ? cell(k) : std::string());
  };
  add([&](size_t k) { return csv_number(image.probabilities[k]); });
  if (decisions_) {
    add([&](size_t k) {
      const auto value = calibrated_probability(image, k);
      return value ? csv_number(*value) : std::string();
    });
    add([&](size_t k) {
      const auto positive = is_positive(image, k);
      return positive ? std::string(*positive ? "1" : "0") : std::string();
    });
  }
  if (is_ensemble_) add([&](size_t k) { return csv_number(image.spreads[k]); });
  return text + "," + csv_field(image.error) + "," + csv_field(image.note) +
         "\n";
}

std::string ImageScoreRows::json(const ImageScore& image) const {
  Json json = {{"image", image.image}};
  // As text of JSON other bytes become U+FFFD, and two names may become one.
  if (line_not_utf8(image.image) > 0)
    json["image_hex"] = hex_text(std::as_bytes(std::span(image.image)));
  if (!image.error.empty()) {
    json["error"] = image.error;
    return json_text(json) + "\n";
  }
  for (size_t k = 0; k < findings_.size(); ++k)
    json["probabilities"][findings_[k]] = image.probabilities[k];
  for (size_t k = 0; k < image.spreads.size(); ++k)
    json["spread"][findings_[k]] = image.spreads[k];
  // Doubles of as few digits as a float has.
  for (const float value : image.features)
    json["features"].push_back(std::stod(number_text(value)));
  if (!image.note.empty()) json["note"] = image.note;
  if (decisions_) {
    for (size_t k = 0; k < findings_.size(); ++k) {
      json["calibrated"][findings_[k]] =
          json_or_null(calibrated_probability(image, k));
      json["positive"][findings_[k]] = json_or_null(is_positive(image, k));
    }
  }
  for (const auto& [finding, file] : image.heat_maps)
    json["heat_maps"][finding] = file;
  return json_text(json) + "\n";
}

Json ImageScoreRows::findings_json(const ImageScore& image) const {
  Json list = Json::array();
  for (size_t k = 0; k < findings_.size(); ++k) {
    const auto mapped =
        decisions_ ? calibrated_probability(image, k) : std::nullopt;
    list.push_back({{"name", findings_[k]},
                    {"probability", image.probabilities[k]},
                    {"calibrated", json_or_null(mapped)},
                    {"threshold", json_or_null(threshold(k))},
                    {"positive", json_or_null(is_positive(image, k))}});
  }
  return list;
}

Json ImageScoreRows::decisions_json() const {
  if (!decisions_) return nullptr;
  Json json = {{"rule", decisions_->rule},
               {"calibration", choice_name(decisions_->calibration)}};
  for (size_t k = 0; k < findings_.size(); ++k) {
    const FindingRules& rules = decisions_->rules[k];
    json["findings"][findings_[k]] = {
        {"threshold", json_or_null(rules.threshold(decisions_->rule))},
        {"chosen_on_positives", rules.positives},
        {"few_positives", rules.few_positives()}};
  }
  return json;
}

double ImageScoresSummary::images_per_s() const {
  return seconds > 0 ? static_cast<double>(scored) / seconds : 0;
}

std::string summary_text(const ImageScoresSummary& s) {
  std::string text = counted(static_cast<int64_t>(s.images), "image") + ", " +
                     std::to_string(s.scored) + " scored";
  if (s.scored < s.images)
    text += ", " + counted(static_cast<int64_t>(s.images - s.scored), "error");
  if (s.noted > 0)
    text += "; " + counted(static_cast<int64_t>(s.noted), "image") +
            " may be no chest X-ray, see the notes";
  if (s.left_out > 0)
    text += "; " + counted(static_cast<int64_t>(s.left_out), "file") +
            " of other kinds left out";
  return text + "; " + fixed(s.images_per_s(), 1) + " images/s";
}

std::string summary_json(const ImageScoresSummary& s,
                         const ImageScoreRows& rows) {
  const Json json = {{"images", s.images},
                     {"scored", s.scored},
                     {"errors", s.images - s.scored},
                     {"notes", s.noted},
                     {"left_out", s.left_out},
                     {"images_per_s", s.images_per_s()},
                     {"operating_point", rows.decisions_json()}};
  return json_text(json) + "\n";
}

}  // namespace chexnet
