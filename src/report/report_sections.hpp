// The sections of report.html, each a function of a run's records (results.json
// as `results`; one split of it as `evaluation`). "" where there is nothing to
// show.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/core/json.hpp"
#include "report_values.hpp"

namespace chexnet {

// The split that a reader wants first: test, else the one there is.
std::string main_split(const Json& results);

// For a clinician: network and data, AUROC per finding with intervals, and
// limits of use.
std::string opening(const Json& results, const std::string& split);
// An ensemble beside its members, and how far they agree.
std::string ensemble_section(const Json& results);
std::string data_section(const Json& results, const std::string& split);
// How many images data.missing: skip left out of which split; a sentence
// without its stop.
std::string missing_images(const Json& results);
// All findings with all figures; published ones beside them.
std::string figures_section(const Json& results, const std::string& split);
std::string operating_section(const Json& evaluation);
// ROC, precision-recall and reliability, from the table of predictions.
// "" where they are drawn.
std::string why_no_curves(const std::filesystem::path& folder,
                          const Json& evaluation, const std::string& split);
std::string curves_section(const std::filesystem::path& folder,
                           const Json& evaluation, const std::string& split);
// Whether scores mean what they say, before and after calibration.
std::string calibration_section(const Json& evaluation);
std::string subgroups_section(const Json& evaluation);
// The pictures of RUN/examples.
std::string examples_section(const std::filesystem::path& folder);
// Loss, AUROC, throughput, waiting, ranks.
std::string training_section(const std::filesystem::path& folder,
                             const Json& results);
std::string settings_section(const Json& results);
// Which of these are missing, each with the reason.
std::string gaps_section(const Json& results, const std::string& split,
                         const std::filesystem::path& folder, bool for_sharing);

}  // namespace chexnet
