#include "chexnet/train/step.hpp"

#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "support/catch.hpp"
#include "support/parity_run.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

TEST_CASE("a gradient that is not finite changes nothing and says so") {
  Network network(network_spec("densenet121"), 14, {});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {TrainConfig{}, equal_weights()});
  at::Tensor labels = parity_labels(0);
  labels[0][0] = INFINITY;  // a value no manifest lets through
  const at::Tensor before = network.parameters().flat_values().clone(),
                   running = network.parameters().flat_running().clone();
  const auto result = step.run(parity_images(0), labels, 84, 1e-3);
  REQUIRE(result);
  CHECK_FALSE(result->applied);
  CHECK(at::equal(network.parameters().flat_values(), before));
  CHECK(at::equal(network.parameters().flat_running(), running));
}

TEST_CASE("clipping bounds the update's gradient") {
  TrainConfig c;
  c.optimizer = OptimizerKind::kSgd;
  c.momentum = 0;
  c.clip_norm = 1e-3;
  Network network(network_spec("densenet121"), 14,
                  {.precision = Precision::kFp64});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {c, equal_weights()});
  const at::Tensor before = network.parameters().flat_values().clone();
  const auto result = step.run(parity_images(0), parity_labels(0), 84, 1.0);
  CHECK(result->gradient_norm > 1e-3);
  CHECK(at::linalg_vector_norm(network.parameters().flat_values() - before)
            .item<double>() == Approx(1e-3).epsilon(1e-6));
}

TEST_CASE("after a gradient that was not finite, clipped steps go on") {
  TrainConfig c;
  c.clip_norm = 1e-3;
  Network network(network_spec("densenet121"), 14, {});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {c, equal_weights()});
  at::Tensor labels = parity_labels(0);
  labels[0][0] = INFINITY;
  CHECK_FALSE(step.run(parity_images(0), labels, 84, 1e-3)->applied);
  CHECK(step.optimizer().steps().all == 0);
  CHECK(step.run(parity_images(0), parity_labels(0), 84, 1e-3)->applied);
  CHECK(step.optimizer().steps().all == 1);
}

// Of ten million times as many labels the mean gradient is below what fp16 can
// hold.
TEST_CASE("small gradients survive a journey in fp16") {
  std::vector<at::Tensor> gradients(2);
  for (const bool narrow : {false, true})
    ThreadWorld(2).run([&](Communicator& comm) {
      Network network(network_spec("densenet121"), 14,
                      {.frozen = FrozenPart::kBackbone});
      network.parameters().initialize(1);
      TrainStep::Options options{TrainConfig{}, equal_weights()};
      if (narrow) options.compression = GradientCompression::kFp16;
      TrainStep step(network, comm, options);
      step.run(parity_images(0), parity_labels(0), 84e7, 0);
      if (comm.rank() == 0)
        gradients[narrow ? 1 : 0] =
            network.parameters().flat_gradients().clone();
    });
  const at::Tensor &exact = gradients[0], &travelled = gradients[1];
  CHECK(exact.abs().max().item<double>() < 1e-7);
  CHECK((travelled - exact).norm().item<double>() <
        0.1 * exact.norm().item<double>());
}

TEST_CASE("what is frozen at first stays as it was, and travels, once thawed") {
  Network network(network_spec("densenet121"), 14, {});
  network.parameters().initialize(1);
  ThreadWorld(1).run([&](Communicator& comm) {
    TrainStep::Options options{TrainConfig{}, equal_weights()};
    options.late = FrozenPart::kBlock2;
    TrainStep step(network, comm, options);
    const Parameters& p = network.parameters();
    const int frozen = frozen_parts(options.late);
    const int64_t end = p.trained_end(frozen);
    const auto travels = [&] {
      size_t elements = 0;
      for (const Bucket& bucket : step.reducer().buckets())
        elements += bucket.end - bucket.begin;
      return static_cast<int64_t>(elements);
    };
    const auto moved = [&] {
      const at::Tensor values = p.flat_values().clone(),
                       running = p.flat_running().clone();
      step.run(parity_images(0), parity_labels(0), 84, 1e-3);
      return std::array{
          !at::equal(values.slice(0, 0, end), p.flat_values().slice(0, 0, end)),
          !at::equal(values.slice(0, end), p.flat_values().slice(0, end)),
          !at::equal(
              running.slice(0, 0, p.moving_statistics(frozen)),
              p.flat_running().slice(0, 0, p.moving_statistics(frozen)))};
    };
    // A batch that was measured before leaves its gradient.
    at::Tensor(p.flat_gradients()).fill_(1);
    step.freeze();
    CHECK(moved() == std::array{true, false, false});
    CHECK(travels() < p.size());
    CHECK(at::Tensor(p.flat_gradients())
              .slice(0, end)
              .abs()
              .max()
              .item<double>() == 0);
    step.thaw();
    CHECK(moved() == std::array{true, true, true});
    CHECK(travels() >= p.count());
    CHECK(step.optimizer().steps().all == 2);
    CHECK(step.optimizer().steps().late == 1);
  });
}
