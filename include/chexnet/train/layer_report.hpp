// Where the time of a pass goes, by kind of layer, beside what the machine can
// do.
#pragma once

#include <string>
#include <vector>

#include "chexnet/engine/layer_times.hpp"

namespace chexnet {

struct LayerRow {
  std::string layers;
  double ms_per_step = 0, gflop_per_s = 0, gb_per_s = 0;
};
struct LayerReport {
  // By kind of layer; where ATen computes, by operator, each timed alone.
  std::vector<LayerRow> rows;
  Ceilings ceilings;  // what the machine can do; 0 where ATen computes
};

// Rows of what `times` has seen in `steps` steps that took `seconds`; what no
// layer accounts for has the last row, called `rest`. No row where `times` is
// empty.
std::vector<LayerRow> layer_rows(const LayerTimes& times, int steps,
                                 double seconds, const std::string& rest);

}  // namespace chexnet
