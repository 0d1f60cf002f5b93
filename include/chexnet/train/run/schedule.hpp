// The learning rate as a function of how many images were seen, so that a
// config means the same on any number of ranks.
#pragma once

#include <cstdint>
#include <limits>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Watches the validation loss and lowers a factor when it stops falling:
// PyTorch's ReduceLROnPlateau with threshold 1e-4 relative and patience =
// plateau_patience - 1.
struct Plateau {
  double factor = 1;
  double best = std::numeric_limits<double>::infinity();
  int64_t bad = 0;
  // Returns true when the factor was lowered.
  bool observe(double loss, const TrainConfig& config);
};
// Whether Plateau observes the evaluation after `position` images: under
// train.schedule plateau, once a step at the full rate was made. Losses during
// warm-up say nothing about the full rate, and no lower factor would act on
// them. timm's PlateauLRScheduler and fairseq's reduce_lr_on_plateau do the
// same.
bool plateau_observes(const TrainConfig& config, int64_t batch,
                      uint64_t position, uint64_t images);

// train.lr after train.lr_scaling.
double scaled_rate(const TrainConfig& config, int64_t batch);

// scaled_rate(batch) x warm-up x schedule, for the step that follows
// `position` images of epochs of `images`. Warm-up rises with the images at the
// end of the step, so no step has rate 0; the schedules after it count from its
// end.
double learning_rate(const TrainConfig& config, int64_t batch,
                     uint64_t position, uint64_t images,
                     const Plateau& plateau);

// Steps of the whole run for `images` training images, `batch` of them per
// step.
int64_t total_steps(const TrainConfig& config, int64_t batch, uint64_t images);
// Epochs that are complete after `step` steps: no more than the run shall have,
// though a batch may be larger than all images.
int64_t epochs_complete(const TrainConfig& config, int64_t step, int64_t batch,
                        uint64_t images);
// The epoch, counted from 1, in which the step-th step began.
int64_t epoch_of(int64_t step, int64_t batch, uint64_t images);

}  // namespace chexnet
