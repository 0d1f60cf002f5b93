#include "chexnet/model/heat_maps.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/heat_map_bed.hpp"

using namespace chexnet;

namespace {

double mean_of_map(const HeatMaps& maps, size_t n, size_t k) {
  double sum = 0;
  const int pixels = maps.height * maps.width;
  for (int p = 0; p < pixels; ++p) sum += maps.map(n, k)[p];
  return sum / pixels;
}

double largest_difference(const std::vector<float>& a,
                          const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("the mean of a class activation map and the bias are the logit",
          "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"})
    for (const bool own_engine : {true, false}) {
      INFO(arch << (own_engine ? " engine" : " ATen"));
      Made made(arch, {.own_engine = own_engine});
      const at::Tensor images = noise_images(3, 64);
      const HeatMaps maps =
          heat_maps(made.network, images, {HeatMapMethod::kCam});
      REQUIRE((maps.images == 3 && maps.findings == kBedFindings));
      REQUIRE((maps.height == 2 && maps.width == 2));
      const at::Tensor logits =
          made.network.forward(images, Mode::kInference).to(at::kDouble);
      for (size_t n = 0; n < 3; ++n)
        for (size_t k = 0; k < kBedFindings; ++k) {
          const double logit = maps.logits[n * kBedFindings + k];
          CHECK(logit ==
                logits[static_cast<int64_t>(n)][static_cast<int64_t>(k)]
                    .item<double>());
          CHECK(mean_of_map(maps, n, k) + 0.25 == Approx(logit).margin(1e-4));
        }
    }
}

TEST_CASE(
    "Grad-CAM of the last map is the class activation map's positive part, "
    "divided by its pixels",
    "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"})
    for (const bool own_engine : {true, false}) {
      INFO(arch << (own_engine ? " engine" : " ATen"));
      Made made(arch,
                {.precision = Precision::kFp64, .own_engine = own_engine});
      const at::Tensor images = noise_images(2, 64);
      const HeatMaps cam =
          heat_maps(made.network, images, {HeatMapMethod::kCam});
      const HeatMaps grad =
          heat_maps(made.network, images, {HeatMapMethod::kGradCam});
      REQUIRE(grad.values.size() == cam.values.size());
      bool some_negative = false, some_positive = false;
      for (size_t i = 0; i < cam.values.size(); ++i) {
        const float positive = std::max(cam.values[i], 0.0f);
        CHECK(4 * grad.values[i] == Approx(positive).margin(1e-6));
        some_negative = some_negative || cam.values[i] < 0;
        some_positive = some_positive || cam.values[i] > 0;
      }
      CHECK((some_negative && some_positive));
    }
}

TEST_CASE("the engine's heat maps are those of ATen's operators",
          "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    const at::Tensor images = noise_images(2, 75);
    const auto maps = [&](bool own_engine) {
      Made made(arch,
                {.precision = Precision::kFp64, .own_engine = own_engine});
      return heat_maps(made.network, images, {HeatMapMethod::kCam}).values;
    };
    CHECK(largest_difference(maps(true), maps(false)) < 1e-6);
  }
}

TEST_CASE("the engine's heat maps do not depend on the number of threads") {
  const int before = at::get_num_threads();
  const auto maps = [](int threads) {
    at::set_num_threads(threads);
    Made made("densenet121", {});
    return heat_maps(made.network, noise_images(3, 64), {HeatMapMethod::kCam})
        .values;
  };
  const auto one = maps(1), three = maps(3);
  at::set_num_threads(before);
  CHECK(one == three);
}

TEST_CASE("heat maps between two training steps change no gradient") {
  const at::Tensor images = noise_images(2, 64);
  Made made("densenet121", {});
  const at::Tensor gradients = made.network.parameters().flat_gradients();
  made.network.backward(
      at::ones_like(made.network.forward(images, Mode::kTraining)));
  const at::Tensor before = gradients.clone();
  heat_maps(made.network, images, {HeatMapMethod::kGradCam});
  CHECK(at::equal(before, gradients));
}

TEST_CASE("maps of shifted inputs are interleaved") {
  for (const int shifts : {2, 4}) {
    Made made("densenet121", {});
    const at::Tensor images = noise_images(2, 64);
    const HeatMaps plain =
                       heat_maps(made.network, images, {HeatMapMethod::kCam}),
                   fine = heat_maps(made.network, images,
                                    {HeatMapMethod::kCam, shifts});
    REQUIRE((fine.width == 2 * shifts && fine.height == 2 * shifts));
    CHECK(fine.logits == plain.logits);
    CHECK(fine.grid.first == plain.grid.first);
    CHECK(fine.grid.step * shifts == plain.grid.step);
    // The input moved by one fine pixel to the left and two up, explicitly.
    const int64_t step = 32 / shifts, up = step * (shifts - 1);
    at::Tensor moved = images.clone();
    for (int64_t y = 0; y < 64; ++y)
      for (int64_t x = 0; x < 64; ++x)
        moved.select(2, y).select(2, x).copy_(
            images.select(2, std::min<int64_t>(63, y + up))
                .select(2, std::min<int64_t>(63, x + step)));
    const HeatMaps once = heat_maps(made.network, moved, {HeatMapMethod::kCam});
    for (size_t n = 0; n < 2; ++n)
      for (size_t k = 0; k < kBedFindings; ++k)
        for (int y = 0; y < 2; ++y)
          for (int x = 0; x < 2; ++x) {
            CHECK(fine.map(n, k)[y * shifts * fine.width + x * shifts] ==
                  plain.map(n, k)[2 * y + x]);
            CHECK(fine.map(n, k)[(y * shifts + shifts - 1) * fine.width +
                                 x * shifts + 1] == once.map(n, k)[2 * y + x]);
          }
  }
}

// A bright spot changes the map around the point where the grid says it is. Of
// an untrained network all channels together say where that is.
TEST_CASE("the last map's pixels are where the grid says") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    Made made(arch, {});
    const int64_t side = 256;
    const MapGrid grid = made.network.last_map_grid();
    const at::Tensor gray = at::full({1, 1, side, side}, 100, at::kByte);
    const at::Tensor without = made.network.forward_features(gray).map.clone();
    double error = 0;
    const std::vector<int64_t> places = {100, 116, 132, 148};
    for (const int64_t at : places) {
      at::Tensor spot = gray.clone();
      spot.narrow(2, at - 4, 8).narrow(3, at - 4, 8).fill_(200);
      const at::Tensor change =
          (made.network.forward_features(spot).map - without)
              .to(at::kDouble)
              .square()
              .sum(at::IntArrayRef{0, 1});  // [h,w]
      const at::Tensor along = (change.sum(0) + change.sum(1)).contiguous();
      double weight = 0, moment = 0;
      for (int64_t i = 0; i < along.size(0); ++i) {
        const double w = along.const_data_ptr<double>()[i];
        weight += w;
        moment += w * static_cast<double>(i);
      }
      error +=
          grid.first + grid.step * moment / weight - static_cast<double>(at);
    }
    // Tiles of the input would be off by half a map's pixel, 16, in a ResNet.
    CHECK(std::abs(error / static_cast<double>(places.size())) < 8);
  }
}
