// The two pictures of the articles: each batch loaded and then trained on, and
// loading beside training (pipelining), to one scale.
#pragma once

#include <string>

namespace chexnet {

// Milliseconds per step, each above 0.
struct OverlapTimes {
  double loading = 0;    // of a batch, by all workers
  double computing = 0;  // all of a step but the wait for loading
  double step = 0;       // measured
};

// A complete SVG. Above, a step takes loading + computing; below, the time that
// was measured. A batch is drawn as loaded just before it is needed.
std::string svg_overlap(const OverlapTimes& times);

}  // namespace chexnet
