// Figures that may not be defined, as text and as JSON. Texts have the digits
// that people compare; JSON and CSV have all.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chexnet/core/json.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/eval/interval.hpp"

namespace chexnet {

// Of an area or an error in 0..1: a test set of 20,000 images has intervals of
// 0.01.
inline constexpr int kFigureDigits = 3;

inline std::string figure_text(const std::optional<double>& value,
                               int digits = kFigureDigits) {
  return value ? fixed(*value, digits) : "-";
}

// "0.7 - 0.8"; where values may be negative another `between`.
inline std::string interval_text(const std::optional<PercentileInterval>& found,
                                 const char* between,
                                 int digits = kFigureDigits) {
  if (!found) return "-";
  return fixed(found->interval.low, digits) + between +
         fixed(found->interval.high, digits);
}

// The findings of a mean AUROC: " over 8 findings".
inline std::string over_findings(int64_t findings, bool rough) {
  if (findings == 0) return "";
  return " over " + counted(findings, "finding") +
         (rough ? ", none with ten positives and ten negatives of five "
                  "patients each: rough, no interval"
                : "");
}

// Below tables in which "*" marks findings.
inline constexpr const char* kRoughHere =
    "  * rough: fewer than ten positives; no interval (-): fewer than five "
    "patients with the finding, or without\n";
inline constexpr const char* kRoughHereOrThere =
    "  * rough: fewer than ten positives, here or where it was chosen\n";

inline Json json_of(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json json_of(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high})
                  : Json(nullptr);
}
inline Json json_of(const std::optional<PercentileInterval>& found) {
  return found ? json_of(std::optional(found->interval)) : Json(nullptr);
}

}  // namespace chexnet
