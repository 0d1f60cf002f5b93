#include "train/recorded_steps.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

// weights += the batch's sum.
struct Training {
  at::Tensor weights = at::ones({3}, at::kDouble);
  std::function<at::Tensor()> present;  // step
  at::Tensor step(RecordedSteps& steps, const at::Tensor& batch) {
    present = [this, batch] {
      weights.add_(batch.sum());
      return batch.sum();
    };
    return steps.run({batch, {}}, present);
  }
};

// A recording of the CPU: the step, called again. As where a graph is captured,
// recording changes nothing.
class CalledAgain final : public Recorder {
 public:
  enum class Fault { kNone, kRefuses, kSecondRefuses, kOtherBits };
  CalledAgain(const Training& training, Fault fault)
      : training_(training), fault_(fault) {}
  size_t record(const std::function<void()>& work) override {
    TORCH_CHECK(fault_ != Fault::kRefuses, "no graphs here");
    if (fault_ == Fault::kSecondRefuses && !recorded_.empty())
      throw DeviceError("[nccl] none any more");
    const at::Tensor before = training_.weights.clone();
    work();
    at::Tensor weights = training_.weights;
    weights.copy_(before);
    recorded_.push_back(training_.present);
    return recorded_.size() - 1;
  }
  void replay(size_t recording) override {
    recorded_.at(recording)();
    at::Tensor weights = training_.weights;
    if (fault_ == Fault::kOtherBits) weights.add_(1e-6);
  }

 private:
  const Training& training_;
  Fault fault_;
  std::vector<std::function<at::Tensor()>> recorded_;
};

std::unique_ptr<Recorder> recorder_for(
    const Training& training,
    CalledAgain::Fault fault = CalledAgain::Fault::kNone) {
  return std::make_unique<CalledAgain>(training, fault);
}

}  // namespace

TEST_CASE("steps are recorded for two buffers, and no other is replayed") {
  const auto comm = solo_communicator();
  Training training;
  RecordedSteps steps(recorder_for(training), *comm,
                      {{training.weights}, [] {}}, true);
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
      GENERATE(CalledAgain::Fault::kRefuses, CalledAgain::Fault::kSecondRefuses,
               CalledAgain::Fault::kOtherBits);
  const bool required = GENERATE(false, true);
  const auto results = rank_results(2, [&](Communicator& world) -> std::string {
    Training training;
    RecordedSteps steps(
        recorder_for(training,
                     world.rank() == 1 ? fault : CalledAgain::Fault::kNone),
        world, {{training.weights}, [] {}}, required);
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
