#include "training_stream.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/balanced.hpp"
#include "chexnet/data/pipeline.hpp"

namespace chexnet {
namespace {

// An order file also means: the pixels as they are.
bool keeps_order(const Config& config) {
  return !config.train.order_file.empty();
}

std::vector<double> draw_weights(const RunContext& run,
                                 const std::vector<uint32_t>& rows) {
  if (keeps_order(run.config) ||
      run.config.train.sampling == SamplingKind::kUniform)
    return {};
  return balanced_weights(run.dataset.manifest, rows);
}

uint64_t seed_of(const Config& config) {
  return static_cast<uint64_t>(config.run.seed);
}

}  // namespace

TrainingStream::TrainingStream(const RunContext& run,
                               const std::vector<uint32_t>& rows, int64_t batch,
                               uint64_t position)
    : sampler(training_sampler(
          run.config.data, run.dataset.images->index(), rows,
          {.seed = seed_of(run.config),
           .keep_order = keeps_order(run.config),
           .mixup = keeps_order(run.config) ? 0 : run.config.train.mixup,
           .draw_weights = draw_weights(run, rows),
           .batch = static_cast<uint64_t>(batch),
           .first_position = position,
           .rank = run.comm.rank(),
           .world_size = run.comm.size()})),
      reader(*run.dataset.images, training_preprocessing(run.config.data),
             keeps_order(run.config) ? Augmentation::none()
                                     : augmentation_of(run.config.data),
             seed_of(run.config)),
      options(loader_options(run.config.data,
                             static_cast<int>(batch) / run.comm.size(),
                             reader.source(), run.device.cores)) {}

double labels_in(const Batch& batch) {
  return static_cast<double>(std::ranges::count_if(
      batch.labels, [](float label) { return !std::isnan(label); }));
}

void refuse_damaged(const RunContext& run, const Batch& batch, double damaged) {
  if (run.config.data.corrupt.skip) {
    for (const auto& error : batch.errors)
      if (!error.empty()) log_warning(error + " (skipped)");
    return;
  }
  for (const auto& text : gather_text(run.comm, batch.first_error())) {
    if (text.empty()) continue;
    const std::string more =
        damaged > 1 ? " (" + fixed(damaged, 0) + " damaged images in this step)"
                    : "";
    throw DataError("{}{}; data.corrupt=skip leaves such images out", text,
                    more);
  }
}

}  // namespace chexnet
