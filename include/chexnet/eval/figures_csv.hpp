// Figures as a table for other programs, one figure on a line.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/operating_table.hpp"

namespace chexnet {

// finding,figure,rule,threshold,value,low,high,positives,negatives; a blank is
// not defined, or does not apply. PPV and NPV at a prevalence have lines of
// their own where it is given. Shortest text that reads back equal.
std::string figures_csv(const Figures& figures,
                        std::span<const OperatingPoint> points,
                        std::optional<double> prevalence);

}  // namespace chexnet
