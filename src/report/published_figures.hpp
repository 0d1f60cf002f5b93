// AUROCs that papers report for ChestX-ray14, to stand beside a run's own, and
// only where both are of the same images.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "report_values.hpp"

namespace chexnet {

struct PublishedFigures {
  const char* source;
  std::map<std::string, double> auroc;  // by finding
  double mean = 0;
};

// Of papers that scored NIH's official test list, where `split` of
// results.json is that list by its numbers of images and patients; else none.
const std::vector<PublishedFigures>& figures_of_same_list(
    const Json& results, const std::string& split);

// A figure that readers may know, and why it is no measure for other images.
extern const char* const kPublishedElsewhere;

}  // namespace chexnet
