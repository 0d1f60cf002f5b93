// Conclusions from the figures of a split, in words.
#pragma once

#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "report_values.hpp"

namespace chexnet {

// How well images with a finding are told from those without, by the LOWER end
// of the 95 % interval of the AUROC, so that little data never looks good. Each
// interval is of its finding alone, not corrected for the choice among all of
// them. The steps 0.8 and 0.7 are those of Hosmer and Lemeshow (Applied
// Logistic Regression, 2000), "excellent" and "acceptable".
struct Discrimination {
  // Names of findings; each is in one list.
  std::vector<std::string> well;       // at least 0.8
  std::vector<std::string> fairly;     // at least 0.7
  std::vector<std::string> weakly;     // above 0.5
  std::vector<std::string> not_shown;  // the interval holds 0.5
  std::vector<std::string> worse;      // all of it is below 0.5
  std::vector<std::string> flawless;   // AUROC 1, so resamples show no spread
  // The interval is above 0.5, from under 30 positives: its limits are rough,
  // and of networks without skill one in twenty has such a finding.
  std::vector<std::string> small;
  std::vector<std::string> too_few;  // under ten positives or five patients
};
// `evaluation`: of results.json.
Discrimination discrimination_of(const Json& evaluation);
// One sentence for each list that is not empty.
std::vector<std::string> sentences_of(const Discrimination& found);

// Uses for which such a network is unfit. `results`: all of results.json.
std::vector<std::string> limits_of_use(const Json& results,
                                       const std::string& split);

}  // namespace chexnet
