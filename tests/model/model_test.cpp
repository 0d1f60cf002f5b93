#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

// One forward and backward; returns the flat gradients and batch statistics.
at::Tensor gradients_of(Network& network, const at::Tensor& images,
                        const at::Tensor& labels, double scale,
                        double entries) {
  const BatchLoss loss(equal_weights(),
                       network.parameters().flat_values().options());
  const at::Tensor logits = network.forward(images, Mode::kTraining);
  network.backward(
      loss(logits, labels.to(logits.scalar_type()), scale, entries).dlogits);
  return network.parameters().flat_gradients_and_statistics().clone();
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace

// A bucket of gradients travels once written() has passed its end.
TEST_CASE("a gradient is final when its end is told, and ends ascend") {
  for (const char* arch : {"densenet121", "resnet50"})
    for (const auto precision : {Precision::kFp32, Precision::kBf16})
      for (const bool own_engine : {true, false}) {
        INFO(arch << (own_engine ? ", engine" : ", ATen"));
        Network network(network_spec(arch), 14,
                        {.precision = precision, .own_engine = own_engine});
        const at::Tensor logits = network.forward(
            at::randint(0, 256, {2, 1, 64, 64}, at::kByte), Mode::kTraining);
        const at::Tensor gradients = network.parameters().flat_gradients();
        gradients.fill_(12345);  // of no step before
        const at::Tensor as_told = at::empty_like(gradients);
        int64_t told = 0;
        bool ascend = true;
        network.backward(
            at::rand_like(logits), {.on_ready = [&](int64_t end) {
              ascend = ascend && end > told;
              if (end <= told) return;
              as_told.slice(0, told, end).copy_(gradients.slice(0, told, end));
              told = end;
            }});
        CHECK(ascend);
        CHECK(told >= network.parameters().count());
        CHECK(
            at::equal(as_told.slice(0, 0, told), gradients.slice(0, 0, told)));
      }
}

TEST_CASE("every network of the table has torchvision's number of parameters") {
  // From torchvision's documentation (num_params at 1,000 classes), less the
  // other classifier.
  struct Case {
    const char* arch;
    int64_t at_1000, features;
  };
  const std::vector<Case> cases = {{"densenet121", 7978856, 1024},
                                   {"densenet169", 14149480, 1664},
                                   {"densenet201", 20013928, 1920},
                                   {"resnet50", 25557032, 2048},
                                   {"resnet101", 44549160, 2048}};
  std::vector<std::string> tested;
  for (const auto& c : cases) tested.emplace_back(c.arch);
  CHECK(tested == choice_names<Architecture>());
  for (const auto& c : cases) {
    Network network(network_spec(c.arch), 14, {});
    INFO(c.arch);
    CHECK(network.parameters().count() ==
          c.at_1000 - (1000 - 14) * (c.features + 1));
  }
  CHECK(error_of<ConfigError>([] {
          network_spec("densenet120");
        }).find("'densenet121'") != std::string::npos);
}

TEST_CASE("backward finishes the flat gradient buffer from front to back") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    Network network(network_spec(arch), 14, {});
    network.parameters().initialize(1);
    std::vector<int64_t> ends;
    const MicroBatch whole{0, 1, [&](int64_t end) { ends.push_back(end); }};
    const at::Tensor logits =
        network.forward(parity_images(0, 2), Mode::kTraining, whole);
    network.backward(at::ones_like(logits), whole);
    std::vector<int64_t> expected;
    for (const auto& p : network.parameters().list()) expected.push_back(p.end);
    CHECK(ends == expected);
  }
}

TEST_CASE(
    "two ranks with synchronized BatchNorm equal one rank with the whole "
    "batch",
    "[arithmetic]") {
  const at::Tensor images = parity_images(3, 8), labels = parity_labels(3, 8);
  struct Case {
    const char* arch;
    bool own_engine;
  };
  for (const Case& c : {Case{"densenet121", true},
                        {"densenet121", false},
                        {"resnet50", true}}) {
    NetworkOptions options = {.precision = Precision::kFp64,
                              .own_engine = c.own_engine};
    Network whole(network_spec(c.arch), 14, options);
    whole.parameters().initialize(4);
    const at::Tensor expected =
        gradients_of(whole, images, labels, 1.0, 8 * 14);
    std::vector<at::Tensor> parts(2);
    ThreadWorld(2).run([&](Communicator& comm) {
      NetworkOptions of_rank = options;
      of_rank.sync_batchnorm = &comm;
      Network half(network_spec(c.arch), 14, of_rank);
      half.parameters().initialize(4);
      const int64_t at = comm.rank() * 4;
      parts[static_cast<size_t>(comm.rank())] = gradients_of(
          half, images.narrow(0, at, 4), labels.narrow(0, at, 4), 2.0, 8 * 14);
    });
    INFO(c.arch << (c.own_engine ? ", engine" : ", ATen"));
    CHECK(largest_difference((parts[0] + parts[1]) / 2, expected) <=
          1e-10 * std::max(1.0, expected.abs().max().item<double>()));
  }
}

TEST_CASE("micro-batches add up to the gradient of the step") {
  Network network(network_spec("densenet121"), 14,
                  {.precision = Precision::kFp64});
  network.parameters().initialize(2);
  const at::Tensor images = parity_images(1, 4), labels = parity_labels(1, 4);
  const at::Tensor expected =
      gradients_of(network, images, labels, 1.0, 4 * 14);
  const BatchLoss loss(equal_weights(),
                       network.parameters().flat_values().options());
  int calls = 0;
  for (const int index :
       {0, 1}) {  // the same images twice, each half the weight
    const MicroBatch part{index, 2, [&](int64_t) { ++calls; }};
    const at::Tensor logits = network.forward(images, Mode::kTraining, part);
    network.backward(
        loss(logits, labels.to(at::kDouble), 1.0, 2 * 4 * 14).dlogits, part);
  }
  CHECK(calls == static_cast<int>(network.parameters().list().size()));
  CHECK(largest_difference(network.parameters().flat_gradients_and_statistics(),
                           expected) < 1e-12);
}

TEST_CASE("a frozen backbone changes nothing but the classifier's gradient") {
  Network network(network_spec("densenet121"), 14,
                  {.frozen = FrozenPart::kBackbone});
  network.parameters().initialize(2);
  const at::Tensor gradients =
      gradients_of(network, parity_images(1, 4), parity_labels(1, 4), 1.0, 56);
  const int64_t head = network.parameters().trained_end(kHeadPart);
  CHECK(gradients.narrow(0, 0, head).abs().max().item<float>() > 0);
  CHECK(gradients.narrow(0, head, gradients.numel() - head)
            .abs()
            .max()
            .item<float>() == 0);
}

TEST_CASE("16-bit networks stay near the fp32 one") {
  const at::Tensor images = parity_images(0, 16).view({4, 1, 64, 64});
  Network reference(network_spec("densenet121"), 14, {});
  reference.parameters().initialize(5);
  const at::Tensor expected = reference.forward(images, Mode::kTraining);
  for (const auto precision : {Precision::kBf16, Precision::kFp16}) {
    Network network(network_spec("densenet121"), 14, {.precision = precision});
    network.parameters().initialize(5);
    const at::Tensor logits = network.forward(images, Mode::kTraining);
    CHECK(logits.scalar_type() == at::kFloat);
    const auto error = (at::linalg_vector_norm(logits - expected) /
                        at::linalg_vector_norm(expected))
                           .item<double>();
    INFO(choice_name(precision) << " relative error " << error);
    CHECK(error < (precision == Precision::kBf16 ? 0.2 : 0.04));
    CHECK(error > 0);
  }
}

TEST_CASE(
    "the logits of 16-bit networks are fp32: no two scores tie by rounding") {
  const at::Tensor images = parity_images(0, 16).view({4, 1, 64, 64});
  for (const auto precision : {Precision::kBf16, Precision::kFp16}) {
    Network network(network_spec("densenet121"), 14, {.precision = precision});
    network.parameters().initialize(5);
    const at::Tensor logits = network.forward(images, Mode::kInference);
    const at::Tensor rounded =
        logits.to(compute_type(precision)).to(at::kFloat);
    CHECK((logits != rounded).sum().item<int64_t>() > logits.numel() / 2);
  }
}

TEST_CASE("one value a channel makes no NaN of running statistics") {
  for (const bool own_engine : {true, false}) {
    Network network(network_spec("densenet121"), 14,
                    {.own_engine = own_engine});
    network.parameters().initialize(5);
    gradients_of(
        network,
        parity_images(0, 1).slice(2, 0, 32).slice(3, 0, 32).contiguous(),
        parity_labels(0, 1), 1.0, 14);
    network.parameters().update_running(at::zeros({}));
    INFO("own engine: " << own_engine);
    CHECK(at::isfinite(network.parameters().flat_running()).all().item<bool>());
  }
}

TEST_CASE("a score does not depend on the image's place in the batch") {
  Network network(network_spec("densenet121"), 14, {});
  network.parameters().initialize(5);
  const at::Tensor images = parity_images(0, 4), turned = images.flip(0);
  const at::Tensor a = network.forward(images, Mode::kInference),
                   b = network.forward(turned, Mode::kInference).flip(0);
  CHECK(at::equal(a, b));
}

TEST_CASE(
    "the loss is the mean over labeled entries with weights, and its gradient "
    "is right") {
  const LossWeights weights{{2, 0.5, 1}, {1, 3, 1}};
  const at::Tensor z =
      at::tensor({0.3, -40.0, 2.0, 800.0, -0.7, 0.0}, at::kDouble).view({2, 3});
  const at::Tensor y =
      at::tensor({1.0, 0.0, static_cast<double>(NAN), 0.0, 1.0, 1.0},
                 at::kDouble)
          .view({2, 3});
  const BatchLoss loss(weights, z.options());
  const auto result = loss(z, y, 1.0, 1.0);
  const auto softplus = [](double v) {
    return v > 30 ? v : std::log1p(std::exp(v));
  };
  const double expected = 2 * softplus(-0.3) + 3 * softplus(-40) +
                          1 * softplus(800) + 0.5 * softplus(0.7) + softplus(0);
  CHECK(result.sum.item<double>() == Approx(expected).epsilon(1e-14));
  CHECK(result.dlogits[0][2].item<double>() == 0);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 3; ++k) {
      constexpr double kStep = 1e-6;
      at::Tensor up = z.clone(), down = z.clone();
      up[i][k] += kStep;
      down[i][k] -= kStep;
      const double slope = (loss(up, y, 1, 1).sum.item<double>() -
                            loss(down, y, 1, 1).sum.item<double>()) /
                           (2 * kStep);
      CHECK(result.dlogits[i][k].item<double>() == Approx(slope).margin(1e-7));
    }
  }
  CHECK(largest_difference(loss(z, y, 8.0, 4.0).dlogits, result.dlogits * 2) <
        1e-15);
}

namespace {

LossWeights weights_by(LossWeighting kind, const Manifest& manifest,
                       const Split& split) {
  TrainConfig config;
  config.class_weights = kind;
  return loss_weights(config, manifest, split);
}

}  // namespace

TEST_CASE(
    "loss weights are counted over labeled entries of the training split") {
  Manifest m;
  m.findings = {"A", "B"};
  m.labels = {1, 0, 0, 0, 0, 0, 0, NAN};
  Split split{"train", {0, 1, 2, 3}, ""};
  auto w = weights_by(LossWeighting::kPosWeight, m, split);
  CHECK(w.positive[0] == 3);
  CHECK(w.negative[0] == 1);
  w = weights_by(LossWeighting::kBalanced, m, split);
  CHECK(w.positive[0] == 0.75);
  CHECK(w.negative[0] == 0.25);
}

TEST_CASE(
    "a finding without positives or negatives has no weighted loss on the "
    "training split") {
  Manifest m;
  m.findings = {"no positive", "no negative", "no label", "both"};
  m.labels = {0, 1, NAN, 1, 0, 1, NAN, 0};
  const Split split{"train", {0, 1}, ""};
  auto w = no_loss_weights(m);
  CHECK(w.positive == std::vector<double>{1, 1, 1, 1});
  CHECK(w.negative == std::vector<double>{1, 1, 1, 1});
  w = weights_by(LossWeighting::kBalanced, m, split);
  CHECK(w.positive == std::vector<double>{0, 0, 0, 0.5});
  CHECK(w.negative == std::vector<double>{0, 0, 0, 0.5});
  w = weights_by(LossWeighting::kPosWeight, m, split);
  CHECK(w.positive == std::vector<double>{0, 0, 0, 1});
  CHECK(w.negative == std::vector<double>{0, 0, 0, 1});

  // pos_weight: the loss is that of the fourth finding alone.
  const at::Tensor z = at::zeros({2, 4}, at::kDouble);
  const at::Tensor y = at::tensor(m.labels).view({2, 4}).to(at::kDouble);
  const BatchLoss loss(w, z.options());
  CHECK(loss(z, y, 1, 6).sum.item<double>() == Approx(2 * std::log(2)));
}

TEST_CASE(
    "initial weights depend on seed and name alone and have torchvision's "
    "spread") {
  Network a(network_spec("densenet121"), 14, {}),
      b(network_spec("densenet121"), 3, {});
  a.parameters().initialize(1);
  b.parameters().initialize(1);
  const auto tensor = [](Network& n, const std::string& name) {
    for (const auto& p : n.parameters().list())
      if (p.name == name)
        return n.parameters().flat_values().narrow(0, p.begin, p.end - p.begin);
    return at::Tensor();
  };
  // 32 x 128 x 3 x 3
  const std::string conv = "features.denseblock1.denselayer1.conv2.weight";
  CHECK(at::equal(tensor(a, conv), tensor(b, conv)));
  CHECK(tensor(a, conv).std().item<double>() ==
        Approx(std::sqrt(2.0 / (128 * 9))).epsilon(0.02));
  CHECK(tensor(a, "classifier.weight").abs().max().item<double>() <= 1 / 32.0);
  CHECK(tensor(a, "classifier.bias").abs().max().item<double>() == 0);
  CHECK(tensor(a, "features.norm0.weight").min().item<double>() == 1);
}
