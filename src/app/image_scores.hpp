// Probabilities of single images, row by row, for a terminal, for tables and
// for scripts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/decision_rules.hpp"

namespace chexnet {

struct ImageScore {
  std::string image;
  std::string error;                  // why it has no probabilities; else empty
  std::vector<double> probabilities;  // [K]; empty with an error
  // Its heat maps: finding and file name.
  std::vector<std::pair<std::string, std::string>> heat_maps = {};
  // Why it is unlikely a chest X-ray; empty for most.
  std::string note = {};
  // [K], of an ensemble alone: Predictions::spreads.
  std::vector<double> spreads = {};
  std::vector<float> features = {};  // none but where they are asked for
};

// How a probability becomes a calibrated one, and a yes or no.
struct Decisions {
  std::string rule;  // the word that FindingRules::threshold() takes
  Calibration calibration = Calibration::kTemperature;
  std::vector<FindingRules> rules;  // [K]
};

class ImageScoreRows {
 public:
  // `findings` [K]; `name_width`: of the longest name as it is shown;
  // `is_ensemble`: the images have spreads.
  ImageScoreRows(std::vector<std::string> findings,
                 std::optional<Decisions> decisions, size_t name_width,
                 bool is_ensemble = false);

  // A heading, then a line per image: all findings called positive with "*",
  // and others up to the three highest, or what is wrong. Control characters of
  // names are shown as \xHH.
  std::string text_heading() const;
  // Sentences: findings that have no threshold, or a rough one.
  std::vector<std::string> limits_of_thresholds() const;
  std::string text(const ImageScore& image) const;
  // image,prob:<finding>…[,calibrated:<finding>…,positive:<finding>…]
  // [,spread:<finding>…],error,note; shortest numbers that read back equal. A
  // blank: no threshold, no calibration.
  std::string csv_heading() const;
  std::string csv(const ImageScore& image) const;
  // A line of `predict` in docs/json.md.
  std::string json(const ImageScore& image) const;

  // [{"name", "probability", "calibrated", "threshold", "positive"}], null
  // where the model has none.
  Json findings_json(const ImageScore& image) const;

  // From which probability on finding k is called positive.
  std::optional<double> threshold(size_t k) const;

  // The rules of the rows' yes and no, for the last line of JSON; null without
  // decisions.
  Json decisions_json() const;

 private:
  std::string highest(const ImageScore& image) const;
  std::optional<double> calibrated_probability(const ImageScore& image,
                                               size_t k) const;
  std::optional<bool> is_positive(const ImageScore& image, size_t k) const;

  std::vector<std::string> findings_;
  std::optional<Decisions> decisions_;
  size_t name_width_;
  bool is_ensemble_;
};

// Of all rows.
struct ImageScoresSummary {
  size_t images = 0, scored = 0;
  size_t noted = 0;             // of those that were scored
  size_t left_out = 0;          // files of other kinds
  double seconds = 0;           // of reading and scoring
  double images_per_s() const;  // 0 where none was scored
};
// "12 images, 11 scored, 1 error; 80.1 images/s"
std::string summary_text(const ImageScoresSummary& summary);
// The last line of `predict` in docs/json.md.
std::string summary_json(const ImageScoresSummary& summary,
                         const ImageScoreRows& rows);

}  // namespace chexnet
