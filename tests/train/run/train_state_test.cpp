#include "chexnet/train/run/train_state.hpp"

#include <cmath>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("the state of a run survives JSON") {
  TrainState s;
  s.step = 7;
  s.position = 224;
  s.plateau = {0.1, 0.123456789012345678, 2};
  s.loss_scale = {1024, 5, true};
  s.best = 0.7;
  s.order = {2, 3, "none", "torch"};
  s.unlogged = {3, 1, 40, 0.25, {1.5, 0.1}};
  s.config = "a: \"b\"\n";
  s.best_step = 6;
  s.best_epoch = 2;
  s.epochs_without_best = 3;
  s.validation_sha256 = std::string(64, 'a');
  s.evaluation_due = true;
  s.changes = {{3, "train.epochs", "5", "100"}};
  s.origin = "from B\xe9.safetensors";  // not UTF-8
  const TrainState t = TrainState::from_json(s.to_json(), "x");
  CHECK((t.step == 7 && t.position == 224 && t.plateau.best == s.plateau.best &&
         t.loss_scale.good == 5 && t.best == 0.7));
  CHECK((t.order.ranks == 2 && t.config == s.config));
  CHECK((t.best_step == 6 && t.best_epoch == 2 && t.epochs_without_best == 3));
  CHECK((t.validation_sha256 == s.validation_sha256 && t.evaluation_due &&
         !t.complete));
  CHECK((t.unlogged.steps == 3 && t.unlogged.skipped == 1 &&
         t.unlogged.labeled == 40 && t.unlogged.gradient_norm == 0.25 &&
         t.unlogged.loss == s.unlogged.loss));
  REQUIRE(t.changes.size() == 1);
  CHECK((t.changes[0].step == 3 && t.changes[0].what == "train.epochs" &&
         t.changes[0].before == "5" && t.changes[0].after == "100"));
  CHECK(t.origin == "from B\xef\xbf\xbd.safetensors");
  CHECK(std::isnan(TrainState::from_json(TrainState{}.to_json(), "x").best));
  CHECK(std::isinf(
      TrainState::from_json(TrainState{}.to_json(), "x").plateau.best));
  CHECK(error_of<CheckpointError>([] {
          TrainState::from_json("{}", "folder");
        }).find("folder") != std::string::npos);
}

TEST_CASE("a state whose counts are none is refused") {
  TrainState s;
  s.step = 7;
  const std::string good = s.to_json();
  for (const char* number : {"-7", "7.5", "7e300", "18446744073709551615"}) {
    std::string bad = good;
    bad.replace(bad.find("\"step\": 7") + 8, 1, number);
    CAPTURE(bad);
    CHECK(error_of<CheckpointError>([&] {
            TrainState::from_json(bad, "folder");
          }).find("folder: state.json") != std::string::npos);
  }
}

TEST_CASE(
    "another validation split starts best, plateau and early stop afresh, not "
    "the rate") {
  TrainState s;
  s.epoch = 5;
  s.best = 0.7;
  s.best_step = 40;
  s.epochs_without_best = 3;
  s.plateau = {.factor = 0.1, .best = 0.4, .bad = 1};
  s.forget_validation();
  CHECK(std::isnan(s.best));
  CHECK((s.best_step == -1 && s.best_epoch == 5 && s.epochs_without_best == 0));
  CHECK((s.plateau.factor == 0.1 && std::isinf(s.plateau.best) &&
         s.plateau.bad == 0));
}
