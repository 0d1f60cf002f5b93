#include "train/recorded_steps.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

// A recording of the CPU: what it was given, called again. As where a graph is
// captured, recording changes nothing.
class CalledAgain final : public Recorder {
 public:
  enum class Fault { kNone, kRefuses, kOtherBits };
  CalledAgain(at::Tensor weights, Fault fault)
      : weights_(std::move(weights)), fault_(fault) {}
  size_t record(const std::function<void()>& work) override {
    TORCH_CHECK(fault_ != Fault::kRefuses, "no graphs here");
    const at::Tensor before = weights_.clone();
    work();
    weights_.copy_(before);
    work_.push_back(work);
    return work_.size() - 1;
  }
  void replay(size_t recording) override {
    work_.at(recording)();
    if (fault_ == Fault::kOtherBits) weights_.add_(1e-6);
  }

 private:
  at::Tensor weights_;
  Fault fault_;
  std::vector<std::function<void()>> work_;
};

// weights += the batch's sum, counted.
struct Training {
  at::Tensor weights = at::ones({3}, at::kDouble);
  int computed = 0;
  at::Tensor step(RecordedSteps& steps, const at::Tensor& batch) {
    return steps.run({batch, {}}, {[this, batch] {
                                     ++computed;
                                     weights.add_(batch.sum());
                                     return batch.sum();
                                   },
                                   {weights},
                                   [] {}});
  }
};

std::unique_ptr<Recorder> recorder_for(
    const Training& training,
    CalledAgain::Fault fault = CalledAgain::Fault::kNone) {
  return std::make_unique<CalledAgain>(training.weights, fault);
}

}  // namespace

TEST_CASE("steps are recorded for two buffers, and no other is replayed") {
  const auto comm = solo_communicator();
  Training training;
  RecordedSteps steps(recorder_for(training), *comm, true);
  std::array buffers = {at::zeros({2}, at::kDouble),
                        at::zeros({2}, at::kDouble)};
  double expected = 1;
  for (int k = 0; k < 12; ++k) {
    at::Tensor& buffer = buffers[static_cast<size_t>(k) % 2];
    buffer.fill_(k);  // what the recording reads
    const at::Tensor figures = training.step(steps, buffer);
    CHECK(figures.defined());
    expected += 2 * k;
    CHECK(training.weights[0].item<double>() == expected);
    CHECK(steps.count() == static_cast<size_t>(std::clamp(k - 2, 0, 2)));
  }
  // Another buffer, and the same twice in a row, of which one is under way.
  const at::Tensor other = at::ones({2}, at::kDouble);
  for (const at::Tensor& buffer : {other, buffers[0], buffers[0]}) {
    expected += buffer.sum().item<double>();
    training.step(steps, buffer);
    CHECK(training.weights[0].item<double>() == expected);
  }
  CHECK(steps.count() == 2);
}

TEST_CASE("a recording that one rank cannot have, or is wrong, is nobody's") {
  const auto fault =
      GENERATE(CalledAgain::Fault::kRefuses, CalledAgain::Fault::kOtherBits);
  const bool required = GENERATE(false, true);
  const auto results = rank_results(2, [&](Communicator& world) -> std::string {
    Training training;
    RecordedSteps steps(
        recorder_for(training,
                     world.rank() == 1 ? fault : CalledAgain::Fault::kNone),
        world, required);
    const at::Tensor batch = at::ones({2}, at::kDouble);
    try {
      for (int k = 0; k < 8; ++k) training.step(steps, batch);
    } catch (const DeviceError& error) {
      return error.what();
    }
    return std::to_string(training.weights[0].item<double>()) + " " +
           std::to_string(steps.count());
  });
  for (const std::string& result : results) {
    if (!required) CHECK(result == "17.000000 0");
    if (required) CHECK(result.find("train.record_step=on") != result.npos);
  }
}
