// A line's rate counts from the line before or from skip(), so evaluations and
// checkpoints are in no rate.
#include "train_log.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/train/run/schedule.hpp"

namespace chexnet {

TrainLog::TrainLog(Communicator& comm, MetricsLog* metrics, int64_t batch)
    : comm_(comm),
      metrics_(metrics),
      batch_(static_cast<double>(batch)),
      progress_(comm.rank() == 0) {}

void TrainLog::begin(int64_t step, int64_t total_steps,
                     uint64_t images_of_epoch, const UnloggedSteps& unlogged) {
  interval_ = {.labeled = unlogged.labeled,
               .gradient_norm = unlogged.gradient_norm,
               .steps = unlogged.steps,
               .skipped = unlogged.skipped,
               .steps_before = unlogged.steps};
  // Of other ranks than now, only the sum of all has a meaning.
  if (static_cast<int>(unlogged.loss.size()) == comm_.size())
    interval_.loss = unlogged.loss[static_cast<size_t>(comm_.rank())];
  else if (comm_.rank() == 0)
    interval_.loss =
        std::accumulate(unlogged.loss.begin(), unlogged.loss.end(), 0.0);
  start_s_ = interval_.start_s = now_s();
  start_step_ = step;
  total_steps_ = total_steps;
  images_ = images_of_epoch;
}

void TrainLog::add(const StepResult& result) {
  interval_.loss += result.loss_sum;
  interval_.labeled += result.labeled;
  interval_.allreduce_wait_s += result.allreduce_wait_s;
  interval_.gradient_norm = result.gradient_norm;
  ++interval_.steps;
  if (!result.applied) ++interval_.skipped;
}

UnloggedSteps TrainLog::unlogged() {
  UnloggedSteps steps{interval_.steps, interval_.skipped, interval_.labeled,
                      interval_.gradient_norm,
                      std::vector<double>(static_cast<size_t>(comm_.size()))};
  steps.loss[static_cast<size_t>(comm_.rank())] = interval_.loss;
  comm_.all_reduce(steps.loss, ReduceOp::kSum);
  return steps;
}

// Collective: the loss is the mean over the labels of all ranks, the waits are
// means over the ranks: only those add up over lines to what the table of ranks
// at the end shows. A rank that keeps all others waiting is for the straggler
// detection (straggler.hpp).
void TrainLog::write(const Loader& loader, const TrainState& state, double lr,
                     std::optional<double> job_left_s) {
  const double now = now_s();
  const double elapsed = std::max(now - interval_.start_s, 1e-9);
  const Loader::Stats data = loader.stats();
  std::array<double, 3> sums = {interval_.loss,
                                data.wait_s - interval_.data_wait_before_s,
                                interval_.allreduce_wait_s};
  comm_.all_reduce(sums, ReduceOp::kSum);
  const double loss = sums[0] / std::max(interval_.labeled, 1.0);
  const double data_wait_s = sums[1] / comm_.size();
  const double allreduce_wait_s = sums[2] / comm_.size();
  std::array<double, 3> most = {
      static_cast<double>(data.stalls - interval_.stalls_before),
      static_cast<double>(data.workers), static_cast<double>(data.prefetch)};
  comm_.all_reduce(most, ReduceOp::kMax);
  const double rate =
      batch_ * static_cast<double>(interval_.steps - interval_.steps_before) /
      elapsed;
  images_per_s_ = batch_ * static_cast<double>(state.step - start_step_) /
                  std::max(now_s() - start_s_, 1e-9);
  if (metrics_ != nullptr) {
    MetricFields fields = {{"epoch", state.epoch},
                           {"images", static_cast<int64_t>(state.position)},
                           {"steps", interval_.steps},
                           {"skipped", interval_.skipped},
                           {"loss", loss},
                           {"lr", lr},
                           {"images_per_s", rate},
                           {"data_wait_s", data_wait_s},
                           {"data_stalls", static_cast<int64_t>(most[0])},
                           {"loader_workers", static_cast<int64_t>(most[1])},
                           {"loader_prefetch", static_cast<int64_t>(most[2])},
                           {"allreduce_wait_s", allreduce_wait_s},
                           {"gradient_norm", interval_.gradient_norm}};
    if (job_left_s) fields.emplace_back("job_seconds_left", *job_left_s);
    metrics_->write("train", state.step, fields);
  }
  stalls_ += static_cast<uint64_t>(most[0]);
  progress_.show(progress_text(state, loss, rate, data_wait_s / elapsed));
  interval_ = {};
  skip(loader);
  interval_.start_s = now;  // the time that this line takes belongs to the next
}

void TrainLog::write_at_stop(const Loader& loader, const TrainState& state,
                             double lr, std::optional<double> job_left_s) {
  if (interval_.steps == interval_.steps_before) return;
  const Interval kept = interval_;
  write(loader, state, lr, job_left_s);
  interval_ = kept;
}

void TrainLog::skip(const Loader& loader) {
  const Loader::Stats data = loader.stats();
  interval_.data_wait_before_s = data.wait_s;
  interval_.stalls_before = data.stalls;
  interval_.start_s = now_s();
}

std::string TrainLog::progress_text(const TrainState& state, double loss,
                                    double rate, double wait_fraction) const {
  // By the rate of the run so far: the last steps' own has a checkpoint in it,
  // or none.
  const double left = static_cast<double>(total_steps_ - state.step) * batch_ /
                      std::max(images_per_s_, 1e-9);
  return "epoch " +
         std::to_string(
             epoch_of(state.step, static_cast<int64_t>(batch_), images_)) +
         "  step " + std::to_string(state.step) + "/" +
         std::to_string(total_steps_) + "  loss " + fixed(loss, 4) + "  " +
         fixed(rate, 1) + " images/s  waiting for data " +
         fixed(100 * wait_fraction, 0) + " %" +
         (stalls_ > 0 ? " (" + counted(stalls_, "stall") + ")  " : "  ") +
         readable_s(left) + " left";
}

}  // namespace chexnet
