// The arguments of layers, and of their forward.
#pragma once

#include <c10/core/MemoryFormat.h>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/model/backend.hpp"
#include "chexnet/model/engine/micro_batch.hpp"
#include "chexnet/model/parameters.hpp"
#include "gradient_writer.hpp"

namespace chexnet {

// Shared by layers. `sync` is set for synchronized BatchNorm; with `kernels`
// ours compute where they can (own_operators.hpp). With `recompute` BatchNorm's
// results are not kept for backward, which computes them again, where our
// kernels do.
struct LayerContext {
  Parameters& parameters;
  GradientWriter& gradients;
  Communicator* sync = nullptr;
  at::MemoryFormat memory_format = at::MemoryFormat::ChannelsLast;
  bool kernels = false;
  bool recompute = false;
};

// The argument of every layer's forward.
struct ForwardPass {
  Mode mode;
  const MicroBatch& micro_batch;  // whose batch statistics these are
  int frozen_parts = 0;  // of the network: they compute as in inference
  bool training() const { return mode == Mode::kTraining; }
  ForwardPass of_part(int part) const {
    return {part < frozen_parts ? Mode::kInference : mode, micro_batch};
  }
};

}  // namespace chexnet
