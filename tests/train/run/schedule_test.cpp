#include "chexnet/train/run/schedule.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("the learning rate follows scaling and schedule in images") {
  TrainConfig c;
  c.lr = 1;
  c.lr_base_batch = 16;
  c.epochs = 10;
  const Plateau flat;
  const auto rate = [&](uint64_t position) {
    return learning_rate(c, 64, position, 640, flat);
  };
  CHECK(rate(3200) == 1);
  c.lr_scaling = LrScaling::kLinear;
  CHECK(rate(3200) == 4);
  c.lr_scaling = LrScaling::kSqrt;
  CHECK(rate(3200) == 2);
  c.lr_scaling = LrScaling::kNone;
  c.schedule = ScheduleKind::kCosine;
  CHECK(rate(0) == 1);
  CHECK(rate(3200) == Approx(0.5));
  CHECK(rate(6400) == Approx(0).margin(1e-15));
  c.schedule = ScheduleKind::kStep;
  c.step_epochs = 3;
  c.decay_factor = 0.1;
  CHECK(rate(3 * 640 - 64) == Approx(1));
  CHECK(rate(3 * 640) == Approx(0.1));
  CHECK(rate(6 * 640) == Approx(0.01));
  c.schedule = ScheduleKind::kPlateau;
  CHECK(learning_rate(c, 64, 2560, 640, Plateau{.factor = 0.25}) == 0.25);
}

TEST_CASE(
    "warm-up starts above 0, ends at the full rate, and schedules count from "
    "its end") {
  TrainConfig c;
  c.lr = 1;
  c.epochs = 10;
  c.warmup_epochs = 2;
  const Plateau flat;
  const auto rate = [&](uint64_t position) {
    return learning_rate(c, 64, position, 640, flat);
  };
  CHECK(rate(0) == 0.05);
  CHECK(rate(64) == 0.1);
  CHECK(rate(1280 - 64) == 1);
  CHECK(rate(1280) == 1);
  c.schedule = ScheduleKind::kCosine;
  CHECK(rate(1280) == Approx(1));
  CHECK(rate(1280 + 2560) == Approx(0.5));
  CHECK(rate(6400) == Approx(0).margin(1e-15));
  c.schedule = ScheduleKind::kStep;
  c.step_epochs = 3;
  c.decay_factor = 0.1;
  CHECK(rate(5 * 640 - 64) == Approx(1));
  CHECK(rate(5 * 640) == Approx(0.1));

  c.schedule = ScheduleKind::kConstant;
  c.warmup_epochs = 0.05;  // half a batch: over within the first step
  CHECK(rate(0) == 1);
  c.warmup_epochs = 0.15;  // one and a half
  CHECK(rate(0) == Approx(2.0 / 3));
  CHECK(rate(64) == 1);

  c.schedule = ScheduleKind::kStep;
  c.warmup_epochs = 0.1;
  c.step_epochs = 0.2;  // (0.7 - 0.1) / 0.2 is a little less than 3 in binary
  CHECK(rate(448) == Approx(0.001));
}

TEST_CASE("a plateau lowers the rate when the loss stops falling") {
  TrainConfig c;
  c.plateau_patience = 2;
  c.decay_factor = 0.1;
  Plateau p;
  CHECK_FALSE(p.observe(1.0, c));
  CHECK_FALSE(p.observe(0.9, c));
  CHECK_FALSE(p.observe(0.9, c));  // not lower by 1e-4
  CHECK(p.observe(0.89999, c));    // still not
  CHECK(p.factor == Approx(0.1));
  CHECK_FALSE(p.observe(0.8, c));
  CHECK(p.best == 0.8);
  CHECK_FALSE(p.observe(NAN, c));  // counts as no progress
  CHECK(p.observe(NAN, c));
}

TEST_CASE("a plateau is looked for once a step at the full rate was made") {
  TrainConfig c;
  c.schedule = ScheduleKind::kPlateau;
  const auto observes = [&](uint64_t position) {
    return plateau_observes(c, 64, position, 640);
  };
  CHECK(observes(64));
  c.warmup_epochs = 2;
  CHECK_FALSE(observes(640));
  CHECK_FALSE(observes(1280));  // all steps so far were of the warm-up
  CHECK(observes(1280 + 64));
  c.warmup_epochs = 2.05;  // ends within a step, which begins below the rate
  CHECK_FALSE(observes(1280 + 64));
  CHECK(observes(1280 + 128));
  c.schedule = ScheduleKind::kCosine;
  CHECK_FALSE(observes(6400));
}

TEST_CASE("steps and epochs are counted in images") {
  TrainConfig c;
  c.epochs = 15;
  CHECK(total_steps(c, 32, 836) == 392);
  c.max_steps = 20;
  CHECK(total_steps(c, 32, 836) == 20);
  c.epochs = 0;
  CHECK(total_steps(c, 32, 836) == 20);
  CHECK(epochs_complete(c, 26, 32, 836) == 0);
  CHECK(epochs_complete(c, 27, 32, 836) == 1);
  CHECK(epochs_complete(c, 392, 32, 836) == 15);
  // 6 images in a step of 16.
  CHECK(epochs_complete(c, 1, 16, 6) == 2);
  c.epochs = 1;
  CHECK(epochs_complete(c, 1, 16, 6) == 1);
  // 10 images in steps of 5: the second step completes the first epoch.
  CHECK(epoch_of(1, 5, 10) == 1);
  CHECK(epoch_of(2, 5, 10) == 1);
  CHECK(epoch_of(3, 5, 10) == 2);
}
