// The formula of train.loss.
#pragma once

#include "chexnet/config/config.hpp"

namespace chexnet {

// With p the probability and p_m = max(p - margin, 0), an entry's loss is
//   positive  -(1 - p)^gamma_positive log p
//   negative  -p_m^gamma_negative log(1 - p_m)
// Binary cross-entropy where all are 0. Focal loss (Lin et al., Focal Loss for
// Dense Object Detection, ICCV 2017, eq. 4): both exponents 2. Asymmetric loss
// (Ridnik et al., ICCV 2021, eq. 7): 0 and 4, and a margin of 0.05.
struct LossShape {
  double gamma_positive = 0, gamma_negative = 0, margin = 0;
  bool is_cross_entropy() const {
    return gamma_positive == 0 && gamma_negative == 0 && margin == 0;
  }
};
LossShape loss_shape(const TrainConfig& config);

}  // namespace chexnet
