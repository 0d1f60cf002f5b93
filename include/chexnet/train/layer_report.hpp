// Where the time of a pass goes, by kind of layer, beside what the machine can
// do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chexnet/model/engine/layer_times.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/device.hpp"

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

// Over `steps` calls of `compute`, which uses the network; the last row,
// `rest`, is the time that no layer accounts for. No rows where ATen computes.
LayerReport timed_layers(Network& network, const Device& device, int steps,
                         const std::string& rest,
                         const std::function<void()>& compute);

}  // namespace chexnet
