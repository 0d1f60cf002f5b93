#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "chexnet/core/philox.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

constexpr FrozenPart kParts[] = {FrozenPart::kStem, FrozenPart::kBlock1,
                                 FrozenPart::kBlock2, FrozenPart::kBlock3,
                                 FrozenPart::kBackbone};

struct FrozenStep {
  at::Tensor logits, gradients;  // then the batch statistics
  int64_t told = 0;
};

LossResult loss_of(Network& network, const at::Tensor& logits) {
  const BatchLoss loss(equal_weights(),
                       network.parameters().flat_values().options());
  return loss(logits, parity_labels(0, 4).to(logits.scalar_type()), 1.0, 56);
}

at::Tensor four_images() { return parity_images(0, 16).view({4, 1, 64, 64}); }

// Its running statistics are those of a batch, as a trained network's.
void start(Network& network) {
  network.parameters().initialize(3);
  const FrozenPart until = network.options().frozen;
  network.freeze(FrozenPart::kNone);
  network.forward(four_images(), Mode::kTraining);
  network.parameters().update_running(at::zeros({}), 0, 1.0);
  network.parameters().flat_gradients_and_statistics().zero_();
  network.freeze(until);
}

FrozenStep step_of(Network& network) {
  FrozenStep step;
  step.logits = network.forward(four_images(), Mode::kTraining);
  network.backward(loss_of(network, step.logits).dlogits,
                   {.on_ready = [&](int64_t end) { step.told = end; }});
  step.gradients = network.parameters().flat_gradients_and_statistics().clone();
  return step;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

bool is_zero(const at::Tensor& values) {
  return values.numel() == 0 || values.abs().max().item<double>() == 0;
}

}  // namespace

TEST_CASE(
    "a frozen part gets no gradient and reports no statistics, by both back "
    "ends alike",
    "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"})
    for (const FrozenPart until : kParts) {
      INFO(arch << " frozen until " << choice_name(until));
      std::vector<FrozenStep> steps;
      for (const bool own_engine : {false, true}) {
        Network network(network_spec(arch), 14,
                        {.precision = Precision::kFp64,
                         .frozen = until,
                         .own_engine = own_engine});
        start(network);
        const Parameters& p = network.parameters();
        const FrozenStep& step = steps.emplace_back(step_of(network));
        const int frozen = frozen_parts(until);
        const int64_t end = p.trained_end(frozen),
                      moving = p.moving_statistics(frozen);
        CHECK(end < p.size());
        CHECK((step.told <= end && step.told > end - Parameters::kAlignment));
        CHECK(is_zero(step.gradients.slice(0, end, p.size() + moving)));
        for (const Parameter& q : p.list())
          if (q.part >= frozen) CHECK_FALSE(is_zero(p.part(step.gradients, q)));
        for (const Statistics& s : p.statistics())
          CHECK(is_zero(step.gradients.narrow(
                    0, p.size() + s.begin, s.channels)) == (s.part < frozen));
      }
      CHECK(relative_error(steps[1].logits, steps[0].logits) < 1e-10);
      CHECK(relative_error(steps[1].gradients, steps[0].gradients) < 1e-10);
    }
}

// Of weights right after the border, where statistics and gradients of a frozen
// part's output are what is new.
TEST_CASE("gradients after a frozen part are those of differences",
          "[arithmetic]") {
  for (const char* arch : {"densenet121", "resnet50"})
    for (const FrozenPart until : kParts) {
      if (until == FrozenPart::kBackbone) continue;
      Network network(network_spec(arch), 14,
                      {.precision = Precision::kFp64, .frozen = until});
      start(network);
      const FrozenStep step = step_of(network);
      Parameters& p = network.parameters();
      const auto loss_at = [&](const at::Tensor& values) {
        at::Tensor(p.flat_values()).copy_(values);
        return loss_of(network, network.forward(four_images(), Mode::kTraining))
            .sum.item<double>();
      };
      const at::Tensor values = p.flat_values().clone();
      // The last of backward, so the first of forward.
      const auto first =
          std::ranges::find_if(p.list(), [&](const Parameter& q) {
            return q.end >= p.trained_end(frozen_parts(until)) -
                                Parameters::kAlignment &&
                   q.part == frozen_parts(until);
          });
      REQUIRE(first != p.list().end());
      at::Tensor direction = at::zeros_like(values);
      Random random(13, Purpose::kTest, 0);
      for (int64_t i = first->begin; i < first->end; ++i)
        direction.data_ptr<double>()[i] = random.normal();
      direction /= direction.norm();
      // So short that no ReLU opens or closes on the way; the loss, some 40,
      // is known to 1e-14.
      constexpr double kStep = 1e-9;
      const double difference = (loss_at(values + direction * kStep) -
                                 loss_at(values - direction * kStep)) /
                                (2 * kStep),
                   gradient =
                       (direction * step.gradients.narrow(0, 0, p.size()))
                           .sum()
                           .item<double>() *
                       56;
      INFO(arch << " frozen until " << choice_name(until) << ", "
                << first->name);
      CHECK(std::abs(gradient) > 1e-3);
      CHECK(std::abs(difference - gradient) < 1e-3 * std::abs(gradient) + 3e-5);
    }
}

TEST_CASE("a partly frozen network's results do not depend on threads",
          "[arithmetic]") {
  const int before = at::get_num_threads();
  for (const char* arch : {"densenet121", "resnet50"})
    for (const FrozenPart until : {FrozenPart::kStem, FrozenPart::kBlock2})
      for (const auto precision : {Precision::kFp32, Precision::kBf16}) {
        FrozenStep first;
        for (const int threads : {1, 2, 3}) {
          at::set_num_threads(threads);
          Network network(network_spec(arch), 14,
                          {.precision = precision, .frozen = until});
          start(network);
          const FrozenStep step = step_of(network);
          INFO(arch << " " << choice_name(precision) << " " << threads
                    << " threads");
          if (threads == 1) first = step;
          CHECK(at::equal(step.gradients, first.gradients));
        }
      }
  at::set_num_threads(before);
}

// Backward's maps of frozen parts are not there. Their weights are kept in the
// form that inference reads, so it pays less and less towards the end.
TEST_CASE("what is frozen needs less memory") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    const auto bytes = [&](FrozenPart until) {
      const Network network(network_spec(arch), 14, {.frozen = until});
      return network.planned_bytes(16, 224).value();
    };
    const size_t none = bytes(FrozenPart::kNone);
    size_t before = none;
    for (const FrozenPart until :
         {FrozenPart::kStem, FrozenPart::kBlock1, FrozenPart::kBlock2}) {
      INFO(arch << " frozen until " << choice_name(until));
      CHECK(bytes(until) < before);
      before = bytes(until);
    }
    CHECK(bytes(FrozenPart::kBlock3) < none / 2);
    CHECK(bytes(FrozenPart::kBackbone) < none / 2);
  }
}
