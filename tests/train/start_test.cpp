#include "train/start.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("all that validation scores depend on is in one sum") {
  const auto sum = [](const auto& change) {
    Config config;
    Dataset dataset;
    Manifest& m = dataset.manifest;
    m.findings = {"A", "B"};
    m.images = {"x", "y"};
    m.labels = {1, 0, 0, NAN};
    dataset.splits.val.rows = {1};
    change(config, dataset);
    return validation_sha256(config, dataset);
  };
  const std::string plain = sum([](Config&, Dataset&) {});
  const auto same = [&](const auto& change) { return sum(change) == plain; };
  CHECK(same([](Config& c, Dataset&) { c.eval.batch = 7; }));
  CHECK(same([](Config& c, Dataset&) { c.eval.findings = {"A", "B"}; }));
  CHECK(same([](Config&, Dataset& d) {
    d.manifest.labels[0] = 0;
  }));  // not of the split
  CHECK_FALSE(same([](Config&, Dataset& d) { d.manifest.labels[2] = 1; }));
  CHECK_FALSE(same([](Config&, Dataset& d) { d.manifest.labels[3] = 0; }));
  CHECK_FALSE(same([](Config&, Dataset& d) {
    d.manifest.scored = {1, 0, 0, 0};
  }));
  CHECK_FALSE(
      same([](Config&, Dataset& d) { d.splits.val.sha256 = "another"; }));
  CHECK_FALSE(same([](Config& c, Dataset&) { c.eval.findings = {"B"}; }));
  CHECK_FALSE(
      same([](Config& c, Dataset&) { c.eval.crops = EvalCrops::kTwo; }));
}

TEST_CASE("a complete run has nothing left unless it is asked for more steps") {
  Config config;
  config.train.epochs = 3;
  config.train.early_stop_epochs = 2;
  TrainState s;
  s.step = 30;
  // eval.splits are still to be scored
  CHECK_FALSE(nothing_left(s, config, 10, 100));
  s.complete = true;
  CHECK(nothing_left(s, config, 10, 100));
  config.train.epochs = 4;
  CHECK_FALSE(nothing_left(s, config, 10, 100));
  s.epochs_without_best = 2;  // it had stopped early
  CHECK(nothing_left(s, config, 10, 100));
}
