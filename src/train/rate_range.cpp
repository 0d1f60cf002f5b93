#include "chexnet/train/rate_range.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "batch_tensors.hpp"
#include "batch_upload.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/train/run/schedule.hpp"
#include "chexnet/train/step.hpp"
#include "set_up.hpp"
#include "training_stream.hpp"

namespace chexnet {
namespace {

// Labels of the global batch.
double agree_on(const RunContext& run, const Batch& batch) {
  const auto damaged = std::ranges::count_if(
      batch.errors, [](const auto& error) { return !error.empty(); });
  std::array<double, 2> sums = {labels_in(batch), static_cast<double>(damaged)};
  run.comm.all_reduce(sums, ReduceOp::kSum);
  if (sums[1] > 0) refuse_damaged(run, batch, sums[1]);
  return sums[0];
}

// Of the global batch.
double mean_loss(Communicator& comm, const StepResult& result) {
  std::array<double, 1> sum = {result.loss_sum};
  comm.all_reduce(sum, ReduceOp::kSum);
  return result.applied ? sum[0] / std::max(result.labeled, 1.0) : NAN;
}

}  // namespace

RateCurve measure_rates(const RunContext& run, int64_t batch,
                        const RateRange& range,
                        const std::function<void(int64_t step)>& show) {
  begin_weights(run);
  TrainStep step(run.network, run.comm, step_options(run.config, run.weights));
  if (run.config.model.freeze_epochs > 0) step.freeze();
  const auto rows = training_rows(run.config, run.dataset);
  const TrainingStream stream(run, rows, batch, 0);
  Loader loader(run.dataset.manifest, stream.reader, *stream.sampler,
                stream.options, run.device.batch_memory());
  BatchUpload upload(run.device.where);
  TrainConfig train = run.config.train;

  RateCurve curve;
  int64_t known = 0;  // the others are launched
  const auto take = [&](const StepResult& result) {
    const double rate = range.rate(known++);
    const double loss = mean_loss(run.comm, result);
    return result.labeled == 0 || curve.add(rate, loss);
  };
  for (int64_t i = 0; i < range.steps; ++i) {
    show(i);
    upload.wait();
    const Batch& images = loader.next();
    const double labeled = agree_on(run, images);
    const BatchTensors tensors = upload.upload(tensors_of(images));
    train.lr = range.rate(i);
    const auto result =
        step.run(tensors.images, tensors.labels, labeled,
                 scaled_rate(train, batch), tensors.sample_weights);
    if (result && !take(*result)) return curve;
  }
  while (const auto result = step.finish())
    if (!take(*result)) break;
  if (curve.points().empty() && !curve.diverged())
    throw DataError(
        "[find-lr] none of the images of {} steps has a label, so there is no "
        "loss. Hint: `inspect` counts the labels of the table",
        range.steps);
  return curve;
}

}  // namespace chexnet
