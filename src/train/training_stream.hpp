// What feeds training on this rank, as the config says: for the loop, and for
// what measures it.
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

}  // namespace chexnet
