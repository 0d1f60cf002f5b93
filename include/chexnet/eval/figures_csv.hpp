// Figures as a table for other programs, one figure on a line.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "chexnet/eval/comparison.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/reliability.hpp"
#include "chexnet/eval/subgroup_table.hpp"

namespace chexnet {

// The table's contents; null and empty parts have no lines.
struct FigureTables {
  const Figures& figures;
  std::span<const OperatingPoint> points = {};
  std::optional<double> prevalence = {};
  std::span<const Reliability> reliability = {};
  std::span<const SubgroupTable> subgroups = {};
  const Comparison* comparison = nullptr;
};

// The table's first bytes.
inline constexpr const char* kFiguresHead = "finding,figure,rule,";

// finding,figure,rule,threshold,value,low,high,positives,negatives,group,
// few_positives; a blank is not defined, or does not apply. `rule` also names a
// calibration, `group` a part of the images: "sex=F", or a reliability bin
// "equal_widths 2: 0.1-0.2", whose `positives` and `negatives` are its own.
// `few_positives` is 1 where a figure rests on fewer than ten. PPV and NPV at a
// prevalence have further lines where it is given. Shortest text that reads
// back equal.
std::string figures_csv(const FigureTables& tables);

}  // namespace chexnet
