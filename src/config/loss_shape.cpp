#include "chexnet/config/loss_shape.hpp"

namespace chexnet {

LossShape loss_shape(const TrainConfig& config) {
  LossShape shape;
  switch (config.loss) {
    case LossKind::kBce:
      return shape;
    case LossKind::kFocal:
      shape = {.gamma_positive = 2, .gamma_negative = 2};
      break;
    case LossKind::kAsymmetric:
      shape = {.gamma_positive = 0, .gamma_negative = 4, .margin = 0.05};
      break;
  }
  if (config.loss_gamma.size() != 2) return shape;  // check_for_training
  shape.gamma_positive = config.loss_gamma[0];
  shape.gamma_negative = config.loss_gamma[1];
  return shape;
}

}  // namespace chexnet
