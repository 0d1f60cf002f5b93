#include "reliability_output.hpp"

#include <algorithm>

#include "chexnet/core/text_table.hpp"

namespace chexnet {
namespace {

using chexnet::json_of;  // beside those below

Json json_of(const ReliabilityBin& bin) {
  const bool empty = bin.cases == 0;
  return {
      {"low", bin.low},
      {"high", bin.high},
      {"images", bin.cases},
      {"positives", bin.positives},
      {"mean_probability", empty ? Json(nullptr) : Json(bin.mean_probability)},
      {"rate", empty ? Json(nullptr) : Json(bin.rate())},
      {"interval", json_of(wilson_interval(bin.positives, bin.cases))}};
}

Json json_of(const std::vector<ReliabilityBin>& bins) {
  Json json = Json::array();
  for (const auto& bin : bins) json.push_back(json_of(bin));
  return json;
}

}  // namespace

// "" where no calibration is at hand: raw probabilities alone are in the JSON,
// and a table of them would be read as if they were calibrated.
std::string reliability_text(const std::vector<Reliability>& reliability) {
  const bool calibrated = std::ranges::any_of(
      reliability,
      [](const Reliability& r) { return r.calibration != "none"; });
  if (!calibrated) return "";
  std::vector<std::vector<std::string>> lines = {{"  finding", "calibration",
                                                  "Brier", "ECE, equal widths",
                                                  "ECE, equal masses"}};
  bool few = false;
  for (const auto& r : reliability) {
    few = few || r.few_positives();
    lines.push_back({"  " + r.finding + (r.few_positives() ? " *" : ""),
                     r.calibration, figure_text(r.brier),
                     figure_text(r.error_in_equal_widths),
                     figure_text(r.error_in_equal_masses)});
  }
  std::string text =
      "\n\nCalibration, fitted on validation; expected calibration error in "
      "ten bins\n" +
      columns(lines);
  if (few) text += kRoughHereOrThere;
  text.pop_back();  // whoever prints ends the line
  return text;
}

Json reliability_json(const std::vector<Reliability>& reliability) {
  Json json = Json::array();
  for (const auto& r : reliability) {
    const bool fitted = r.calibration != "none";
    json.push_back({{"finding", r.finding},
                    {"calibration", r.calibration},
                    {"positives", r.positives},
                    {"negatives", r.negatives},
                    {"fitted_on_positives",
                     fitted ? Json(r.fitted_on_positives) : Json(nullptr)},
                    {"few_positives", r.few_positives()},
                    {"brier", json_of(r.brier)},
                    {"calibration_error",
                     {{"equal_widths", json_of(r.error_in_equal_widths)},
                      {"equal_masses", json_of(r.error_in_equal_masses)}}},
                    {"bins",
                     {{"equal_widths", json_of(r.equal_widths)},
                      {"equal_masses", json_of(r.equal_masses)}}}});
  }
  return json;
}

}  // namespace chexnet
