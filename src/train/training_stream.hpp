// The loader of training on this rank, as the config says: for the loop, and
// for commands that measure it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/stream.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct TrainingStream {
  std::unique_ptr<Sampler> sampler;
  ImageReader reader;
  Loader::Options options;

  // Of training_rows(), from `position` on. `batch`: images of a step, all
  // ranks. What `run` names must outlive it.
  TrainingStream(const RunContext& run, const std::vector<uint32_t>& rows,
                 int64_t batch, uint64_t position);
};

// Of this rank's part of a batch.
double labels_in(const Batch& batch);
// Of a step in which all ranks met `damaged` images, more than 0: with
// data.corrupt=fail all ranks throw the same DataError, with `skip` each image
// is logged and counts as not labeled.
void refuse_damaged(const RunContext& run, const Batch& batch, double damaged);

}  // namespace chexnet
