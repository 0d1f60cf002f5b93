#include "chexnet/model/engine/network_spec.hpp"

#include "chexnet/config/options.hpp"
#include "chexnet/model/engine/engine.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("the smallest input leaves one pixel after all halvings") {
  for (const char* arch : {"densenet121", "densenet169", "densenet201"}) {
    const NetworkSpec spec = network_spec(arch);
    const int smallest = smallest_input(spec);
    CHECK(last_map_side(spec, smallest) == 1);
    CHECK(last_map_side(spec, smallest - 1) == 0);
  }
  CHECK(smallest_input(network_spec("resnet50")) == 1);
}

TEST_CASE("padded layers halve a map rounding up, a DenseNet's pools down") {
  struct Case {
    int input, densenet, resnet;
  };
  for (const auto& c : {Case{29, 1, 1}, Case{32, 1, 1}, Case{33, 1, 2},
                        Case{60, 1, 2}, Case{61, 2, 2}, Case{64, 2, 2},
                        Case{224, 7, 7}, Case{225, 7, 8}, Case{256, 8, 8}}) {
    CHECK(last_map_side(network_spec("densenet121"), c.input) == c.densenet);
    CHECK(last_map_side(network_spec("resnet50"), c.input) == c.resnet);
  }
}

TEST_CASE("every network that a config may name is in the table of networks") {
  const ConfigOption* option = find_option("model.arch");
  REQUIRE(option != nullptr);
  CHECK(option->choices == choice_names<Architecture>());
  for (const auto& arch : option->choices)
    CHECK(network_spec(arch).arch == arch);
}

TEST_CASE(
    "the engine refuses channels that are no multiple of 32, also behind a "
    "transition") {
  struct Case {
    DenseNetSpec spec;
    bool computed;
  };
  // The comments give the channels after each transition.
  for (const auto& c :
       std::vector<Case>{{{32, {2, 2, 2, 2}}, true},     // 64, 64, 64
                         {{32, {6, 12, 24, 16}}, true},  // 128, 256, 512
                         {{32, {5, 2, 2, 2}}, false},    // 112
                         {{32, {2, 3, 2, 2}}, false},    // 64, 80
                         {{32, {2, 2, 1, 2}}, false},    // 64, 64, 48
                         {{32, {2, 2, 2, 5}}, true},     // none after the last
                         {{48, {2, 2, 2, 2}}, false},    // growth
                         {{32, {2, 2, 2, 2}, 96}, false},  // stem
                         {{64, {2, 2, 2, 2}}, false}}) {   // 96, 112
    const NetworkSpec spec{"test", c.spec, {"classifier"}};
    INFO(c.spec.growth << " " << c.spec.blocks[0] << " " << c.spec.blocks[1]
                       << " " << c.spec.blocks[2] << " stem " << c.spec.stem);
    CHECK(engine_refuses(spec, 64) ==
          (c.computed ? "" : "channels in multiples of 32"));
  }
  CHECK(engine_refuses(network_spec("resnet50"), 31) ==
        "images of at least 32 pixels, not 31");
}

// torchvision's GFLOPS of its weights (it counts multiply-adds), less the head
// with its 1,000 classes.
TEST_CASE("multiply-adds are those of the published networks") {
  const auto millions = [](Architecture arch, double features) {
    return (forward_multiply_adds(network_spec(arch), 224) + 1000 * features) /
           1e6;
  };
  CHECK(millions(Architecture::kDenseNet121, 1024) == Approx(2834).margin(1));
  CHECK(millions(Architecture::kDenseNet169, 1664) == Approx(3360).margin(1));
  CHECK(millions(Architecture::kDenseNet201, 1920) == Approx(4291).margin(1));
  CHECK(millions(Architecture::kResNet50, 2048) == Approx(4089).margin(1));
  CHECK(millions(Architecture::kResNet101, 2048) == Approx(7801).margin(1));
}
