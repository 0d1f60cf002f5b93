#include "chexnet/train/gradient_control.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

at::Tensor gradients(float first) { return at::tensor({first, 0.0f, 4.0f}); }

}  // namespace

TEST_CASE(
    "the fp16 loss scale halves on overflow and doubles after 2,000 good "
    "steps") {
  GradientControl control(gradients(3), 0, LossScale::for_fp16());
  CHECK(control.scaled(at::ones({1})).item<float>() == 65536);
  control.apply(gradients(INFINITY));
  CHECK(control.not_finite().item<float>() == 1);
  CHECK(control.loss_scale().value == 32768);
  for (int i = 0; i < 2000; ++i) control.apply(gradients(3));
  CHECK(control.loss_scale().value == 65536);
  CHECK(control.loss_scale().good == 0);
  for (int i = 0; i < 40; ++i) control.apply(gradients(NAN));
  CHECK(control.loss_scale().value == 1);
}

TEST_CASE("a fixed scale is taken out of norm and gradient, and stays") {
  GradientControl control(gradients(3), 0, {.value = 1024});
  at::Tensor g = gradients(3) * 1024;
  control.apply(g);
  CHECK(at::equal(g, gradients(3)));
  CHECK(control.norm().item<double>() == 5);
  CHECK(control.not_finite().item<float>() == 0);
  control.apply(gradients(INFINITY));
  CHECK(control.loss_scale().value == 1024);
}

TEST_CASE("clipping shortens long gradients and leaves short ones") {
  GradientControl control(gradients(3), 2.5, {});
  at::Tensor g = gradients(3);
  control.apply(g);
  CHECK(at::allclose(g, gradients(3) / 2));
  CHECK(control.norm().item<double>() == 5);
  GradientControl wide(gradients(3), 6, {});
  g = gradients(3);
  wide.apply(g);
  CHECK(at::equal(g, gradients(3)));
}

// Backward writes no gaps, so what a step leaves there stays.
TEST_CASE("what is 0 stays 0 when the gradient is not finite") {
  for (const float bad : {INFINITY, NAN})
    for (const auto& scale : {LossScale{}, LossScale::for_fp16()}) {
      GradientControl control(gradients(3), 1, scale);
      at::Tensor g = gradients(bad);
      control.apply(g);
      CHECK(control.not_finite().item<float>() == 1);
      CHECK(g[1].item<float>() == 0);
    }
}
