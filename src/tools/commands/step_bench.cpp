// The step, the step without communication and the all-reduce alone are
// measured in turn, round by round, and not one after another: whatever else
// the machine does then disturbs all three alike.
#include "step_bench.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/model/operator_times.hpp"
#include "chexnet/train/random_images.hpp"

namespace chexnet {
namespace {

constexpr double kRate = 1e-4;
constexpr double kPositives = 0.1;  // of the labels

at::Tensor random_labels(int64_t batch, int64_t findings, Random& random) {
  at::Tensor labels = at::zeros({batch, findings}, at::kFloat);
  auto* values = labels.data_ptr<float>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    values[i] = random.chance(kPositives) ? 1.0f : 0.0f;
  return labels;
}

// From where the GPU begins with what is launched to where it ends, as
// PyTorch's events tell it; on a CPU by the clock.
class Stopwatch {
 public:
  explicit Stopwatch(const Device& device) : device_(device) {
    if (device.cuda == nullptr) return;
    begin_.emplace(device.where.type(), c10::EventFlag::BACKEND_DEFAULT);
    end_.emplace(device.where.type(), c10::EventFlag::BACKEND_DEFAULT);
  }
  void start() {
    start_s_ = now_s();
    if (begin_) record(*begin_);
  }
  double stop_ms() {
    if (!begin_) return 1e3 * (now_s() - start_s_);
    record(*end_);
    end_->synchronize();
    return begin_->elapsedTime(*end_);
  }

 private:
  void record(c10::Event& event) {
    const c10::impl::VirtualGuardImpl guard(device_.where.type());
    event.record(guard.getStream(device_.where));
  }

  const Device& device_;
  std::optional<c10::Event> begin_, end_;
  double start_s_ = 0;
};

}  // namespace

double StepBenchTimes::hidden_fraction() const {
  assert(!allreduce_ms.empty());
  const double alone = quantile(allreduce_ms, 0.5),
               exposed = quantile(exposed_ms, 0.5);
  return std::clamp(1 - exposed / alone, 0.0, 1.0);
}

StepBench::StepBench(Network& network, Communicator& comm, const Device& device,
                     const StepBenchOptions& options)
    : network_(network),
      comm_(comm),
      device_(device),
      options_(options),
      step_(network, comm, options.step),
      silent_(network, comm, options.step.without_communication()) {
  assert(options.batch > 0 && options.steps > 0 && options.at_once > 0);
  Random random(1, Purpose::kTest, static_cast<uint64_t>(comm.rank()));
  images_ = random_images(options.batch, options.size, random);
  const auto findings =
      static_cast<int64_t>(options.step.weights.positive.size());
  labels_ = random_labels(options.batch, findings, random);
  if (!options.resident) return;
  images_ = images_.to(device.where);
  labels_ = labels_.to(device.where);
  if (device.cuda != nullptr) step_.record(*device.cuda);
}

// Two recordings follow three steps, and the last of them a comparison.
int StepBench::warm_up() const {
  constexpr int kRecording = 4;
  const bool records = options_.resident && device_.cuda != nullptr;
  return StepBenchTimes::kWarmUp + (records ? kRecording : 0);
}

void StepBench::wait_for_device() {
  if (device_.cuda != nullptr) device_.cuda->synchronize();
}

std::optional<StepResult> StepBench::compute(TrainStep& step) {
  const auto entries = static_cast<double>(labels_.numel() * comm_.size());
  // Copied in each step where they are not resident.
  return step.run(images_.to(device_.where), labels_.to(device_.where), entries,
                  kRate);
}

std::vector<std::vector<double>> StepBench::time_in_turn(
    const std::vector<std::function<void()>>& actions) {
  std::vector<std::vector<double>> times(actions.size());
  Stopwatch watch(device_);
  for (int round = -warm_up(); round < options_.steps; ++round) {
    for (size_t i = 0; i < actions.size(); ++i) {
      comm_.barrier();
      watch.start();
      for (int k = 0; k < options_.at_once; ++k) actions[i]();
      const double ms = watch.stop_ms();
      if (round >= 0) times[i].push_back(ms / options_.at_once);
    }
  }
  return times;
}

StepBenchTimes StepBench::run() {
  StepBenchTimes out;
  double cpu = 0;  // of the steps that are timed
  int warming = warm_up() * options_.at_once;
  std::vector<std::function<void()>> actions = {[&] {
    const double before = cpu_s();
    const auto result = compute(step_);
    if (--warming < 0) cpu += cpu_s() - before;
    if (out.first_step_s == 0) out.first_step_s = process_age_s();
    double least_wait = result ? -1e3 * result->allreduce_wait_s : 0;
    comm_.all_reduce(std::span(&least_wait, 1), ReduceOp::kMax);
    if (comm_.size() > 1) out.exposed_ms.push_back(-least_wait);
  }};
  if (comm_.size() > 1) {
    actions.emplace_back([&] { compute(silent_); });
    actions.emplace_back([&] {
      step_.reducer().begin();
      step_.reducer().finish();
      step_.reducer().wait_until_finished();
    });
  }
  auto times = time_in_turn(actions);
  out.step_ms = std::move(times[0]);
  if (comm_.size() > 1) {
    out.silent_ms = std::move(times[1]);
    out.allreduce_ms = std::move(times[2]);
  }
  out.cpu_s_per_step = cpu / (options_.steps * options_.at_once);
  return out;
}

OperatorCounts StepBench::operators() {
  step_.end_recordings();
  compute(silent_);  // what is made at first use is made
  const OperatorAudit audit;
  compute(silent_);
  return audit.counts();
}

std::vector<LayerRow> StepBench::operator_rows() {
  const OperatorTimes times([this] { wait_for_device(); });
  compute(silent_);
  std::vector<LayerRow> rows;
  for (const auto& row : times.rows())
    rows.push_back({row.name + " x " + std::to_string(row.calls),
                    1e3 * row.seconds, 0,
                    1e-9 * static_cast<double>(row.bytes) / row.seconds});
  return rows;
}

LayerReport StepBench::layers() {
  step_.end_recordings();  // steps by kernels need their memory
  constexpr int kSteps = 3;
  LayerReport report =
      timed_layers(network_, device_, kSteps, "loss, statistics, optimizer",
                   [this] { compute(silent_); });
  if (report.rows.empty()) report.rows = operator_rows();
  return report;
}

}  // namespace chexnet
