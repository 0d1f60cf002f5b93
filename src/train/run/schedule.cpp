//          ______            rate over images; the schedule counts from the end
//         /      `-.         of the warm-up
//        /          `-._
//   ____/               `-.____
//   | warm-up | schedule      |
//
// Everything is in images, none in steps, so a batch of twice the size walks
// the same curve.
#include "chexnet/train/run/schedule.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace chexnet {
namespace {

double warmup_images(const TrainConfig& config, uint64_t images) {
  return config.warmup_epochs * static_cast<double>(images);
}

}  // namespace

bool Plateau::observe(double loss, const TrainConfig& config) {
  constexpr double kThreshold = 1e-4;
  if (loss < best * (1 - kThreshold)) {
    best = loss;
    bad = 0;
    return false;
  }
  if (++bad < config.plateau_patience) return false;
  factor *= config.decay_factor;
  bad = 0;
  return true;
}

bool plateau_observes(const TrainConfig& config, int64_t batch,
                      uint64_t position, uint64_t images) {
  assert(batch > 0 && position >= static_cast<uint64_t>(batch));
  const uint64_t last_step = position - static_cast<uint64_t>(batch);
  return config.schedule == ScheduleKind::kPlateau &&
         static_cast<double>(last_step) >= warmup_images(config, images);
}

double scaled_rate(const TrainConfig& config, int64_t batch) {
  assert(batch > 0);
  const double growth =
      static_cast<double>(batch) / static_cast<double>(config.lr_base_batch);
  if (config.lr_scaling == LrScaling::kLinear) return config.lr * growth;
  if (config.lr_scaling == LrScaling::kSqrt)
    return config.lr * std::sqrt(growth);
  return config.lr;
}

double learning_rate(const TrainConfig& config, int64_t batch,
                     uint64_t position, uint64_t images,
                     const Plateau& plateau) {
  assert(images > 0);
  const double lr = scaled_rate(config, batch);
  const auto seen = static_cast<double>(position);
  const double warmup = warmup_images(config, images);
  if (seen < warmup)
    return lr * std::min(1.0, (seen + static_cast<double>(batch)) / warmup);

  // Since the warm-up.
  const double epochs = (seen - warmup) / static_cast<double>(images);
  if (config.schedule == ScheduleKind::kPlateau) return lr * plateau.factor;
  if (config.schedule == ScheduleKind::kCosine) {
    const double span = std::max(config.epochs - config.warmup_epochs, 1e-9);
    const double done = std::clamp(epochs / span, 0.0, 1.0);
    return lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  if (config.schedule == ScheduleKind::kStep) {
    constexpr double kRounding = 1e-9;  // 0.1 + 2.9 epochs are 3
    const double steps = std::floor(epochs / config.step_epochs + kRounding);
    return lr * std::pow(config.decay_factor, steps);
  }
  return lr;
}

int64_t total_steps(const TrainConfig& config, int64_t batch, uint64_t images) {
  assert(batch > 0);
  const double steps = std::ceil(config.epochs * static_cast<double>(images) /
                                     static_cast<double>(batch) -
                                 1e-9);
  const auto by_epochs = static_cast<int64_t>(steps);
  if (config.max_steps > 0)
    return by_epochs > 0 ? std::min(by_epochs, config.max_steps)
                         : config.max_steps;
  return by_epochs;
}

int64_t epochs_complete(const TrainConfig& config, int64_t step, int64_t batch,
                        uint64_t images) {
  const int64_t complete = step * batch / static_cast<int64_t>(images);
  if (config.epochs <= 0) return complete;
  return std::min(complete, static_cast<int64_t>(std::ceil(config.epochs)));
}

int64_t epoch_of(int64_t step, int64_t batch, uint64_t images) {
  return 1 + (step - 1) * batch / static_cast<int64_t>(images);
}

}  // namespace chexnet
