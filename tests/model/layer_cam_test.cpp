#include "chexnet/model/layer_cam.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "chexnet/model/heat_maps.hpp"
#include "model/aten/backbone.hpp"
#include "support/catch.hpp"
#include "support/heat_map_bed.hpp"

using namespace chexnet;

namespace {

// The logits that ATen's layers give to a middle map.
at::Tensor logits_of(Network& network, const at::Tensor& middle) {
  GradientWriter gradients(network.parameters());
  const LayerContext context{network.parameters(), gradients, nullptr,
                             activation_format(network.options().precision)};
  const MicroBatch whole;
  const at::Tensor features =
      make_backbone(context, network.spec())
          ->from_middle(middle, {Mode::kInference, whole});
  return Classifier(context, network.spec().head.name)
      .forward(features, Mode::kInference);
}

}  // namespace

TEST_CASE("the middle map's gradient is that of differences") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    Made made(arch, {.precision = Precision::kFp64});
    LayerCam layer_cam(made.network);
    layer_cam.compute(noise_images(2, 64));
    const at::Tensor middle = layer_cam.middle().narrow(0, 1, 1);
    CHECK(at::allclose(
        logits_of(made.network, layer_cam.middle()),
        made.network.forward(noise_images(2, 64), Mode::kInference), 1e-9,
        1e-9));
    const at::Tensor direction = at::randn_like(middle);
    const double step = 1e-6;
    const at::Tensor slopes =
        (logits_of(made.network, middle + step * direction) -
         logits_of(made.network, middle - step * direction)) /
        (2 * step);
    for (int64_t k = 0; k < kBedFindings; ++k) {
      const at::Tensor gradient = layer_cam.gradient(1, static_cast<size_t>(k));
      CHECK((gradient * direction[0]).sum().item<double>() ==
            Approx(slopes[0][k].item<double>()).epsilon(1e-4).margin(1e-6));
    }
  }
}

TEST_CASE("LayerCAM is what positive gradients make of the middle map") {
  Made made("densenet121", {.precision = Precision::kFp64});
  // Some of the map's channels are below 0: the ReLU after the next norm lets
  // them pass, so that their gradients count.
  Parameters& p = made.network.parameters();
  p.value(p.id_of("features.denseblock2.denselayer12.conv2.weight"))
      .abs_()
      .neg_();
  p.value(p.id_of("features.transition2.norm.bias")).fill_(10);
  p.refresh_compute_copies();
  LayerCam layer_cam(made.network);
  layer_cam.compute(noise_images(2, 64));
  REQUIRE((layer_cam.height() == 8 && layer_cam.width() == 8));
  int below_0 = 0;                   // values that become 0
  for (const size_t image : {1, 0})  // in any order
    for (size_t finding = 0; finding < kBedFindings; ++finding) {
      const at::Tensor heat = (layer_cam.gradient(image, finding).clamp_min(0) *
                               layer_cam.middle()[static_cast<int64_t>(image)])
                                  .sum(0)
                                  .to(at::kFloat)
                                  .contiguous();
      const auto* first = heat.const_data_ptr<float>();
      auto expected = smoothed({first, first + 64}, 8, 8, 8 * 3.0 / 28);
      for (float& value : expected) {
        below_0 += value < 0 ? 1 : 0;
        value = std::max(value, 0.0f);
      }
      CHECK(layer_cam.map(image, finding) == expected);
    }
  CHECK(below_0 > 0);
  CHECK(layer_cam.map(0, 3) != layer_cam.map(1, 3));
  CHECK(layer_cam.map(0, 3) != layer_cam.map(0, 2));
}

TEST_CASE("LayerCAM does not ask who computes the network, nor in what",
          "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    const at::Tensor images = noise_images(1, 96);
    const auto map = [&](NetworkOptions options) {
      Made made(arch, std::move(options));
      LayerCam layer_cam(made.network);
      layer_cam.compute(images);
      return layer_cam.map(0, 1);
    };
    const auto engine = map({}), aten = map({.own_engine = false}),
               narrow = map({.precision = Precision::kBf16});
    REQUIRE((engine.size() == 144 && narrow.size() == 144));
    const float highest = *std::ranges::max_element(engine);
    REQUIRE(highest > 0);
    for (size_t i = 0; i < engine.size(); ++i) {
      CHECK(std::abs(engine[i] - aten[i]) < 1e-4f * highest);
      CHECK(std::abs(engine[i] - narrow[i]) < 0.2f * highest);
    }
  }
}

TEST_CASE("LayerCAM between two training steps changes no gradient") {
  const at::Tensor images = noise_images(2, 64);
  Made made("densenet121", {});
  const at::Tensor gradients = made.network.parameters().flat_gradients();
  made.network.backward(
      at::ones_like(made.network.forward(images, Mode::kTraining)));
  const at::Tensor before = gradients.clone();
  LayerCam layer_cam(made.network);
  layer_cam.compute(images);
  layer_cam.map(0, 0);
  CHECK(at::equal(before, gradients));
}

// As the last map's (heat_maps_test.cpp).
TEST_CASE("the middle map's pixels are where the grid says") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    Made made(arch, {});
    LayerCam layer_cam(made.network);
    const at::Tensor gray = at::full({1, 1, 128, 128}, 100, at::kByte);
    layer_cam.compute(gray);
    const at::Tensor without = layer_cam.middle().clone();
    double error = 0;
    const std::vector<int64_t> places = {52, 56, 60, 64};
    for (const int64_t at : places) {
      at::Tensor spot = gray.clone();
      spot.narrow(2, at - 4, 8).narrow(3, at - 4, 8).fill_(200);
      layer_cam.compute(spot);
      const at::Tensor change = (layer_cam.middle() - without)
                                    .to(at::kDouble)
                                    .square()
                                    .sum(at::IntArrayRef{0, 1});
      const at::Tensor along = change.sum(0) + change.sum(1);
      const at::Tensor pixel = at::arange(along.size(0), at::kDouble);
      const MapGrid grid = layer_cam.grid();
      error += grid.first - static_cast<double>(at) +
               grid.step * ((along * pixel).sum() / along.sum()).item<double>();
    }
    CHECK(std::abs(error / static_cast<double>(places.size())) < 2);
  }
}

TEST_CASE("smoothing spreads a pixel around itself, and no flat map") {
  std::vector<float> one(9 * 7, 0);
  one[3 * 9 + 4] = 2;
  const auto spread = smoothed(one, 9, 7, 1);
  double sum = 0;
  for (const float value : spread) sum += static_cast<double>(value);
  CHECK(sum == Approx(2).epsilon(1e-6));  // three sigma fit
  CHECK(std::ranges::max_element(spread) - spread.begin() == 3 * 9 + 4);
  CHECK(spread[3 * 9 + 5] == Approx(spread[2 * 9 + 4]));
  // exp(-1 / 2) of the height, as Gaussians are one pixel away.
  CHECK(spread[3 * 9 + 5] / spread[3 * 9 + 4] == Approx(0.60653));
  for (const float value : smoothed(std::vector<float>(12, 3), 4, 3, 2))
    CHECK(value == Approx(3));
}
