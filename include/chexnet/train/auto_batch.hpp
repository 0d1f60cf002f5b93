// The batch of a run: train.batch, which may be auto.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

struct BatchLimits {
  int64_t images = 1;           // in the training split; the batch has no more
  uint64_t host_bytes = 0;      // of memory that are free on this rank's host
  CudaLibrary* cuda = nullptr;  // of a rank that computes on a GPU
};

// The largest global batch that fits every rank, in nine tenths of the memory
// that is free. Collective. By our own engine's plan: activations, optimizer
// state and the loader's ring, in the host's memory, which its ranks share. On
// GPUs by measuring steps of the network, whose gradients and statistics are
// overwritten. ConfigError: neither (ATen's operators on CPUs), or not even one
// image per rank fits.
int64_t auto_batch(const Config& config, Network& network, Communicator& comm,
                   const BatchLimits& limits);

// The batch of a run, all ranks together: train.batch, or else the one an
// earlier start chose for it (0: none did), or else auto_batch. Collective.
// ConfigError: of auto_batch; the ranks cannot share it, or a BatchNorm would
// see one value.
int64_t choose_batch(const RunContext& run, int64_t chosen_before);

// The most images, up to `most`, whose forward and backward pass fit the GPU of
// this rank alone beside what it holds now; 0: not one. Overwrites gradients
// and statistics. For a network whose statistics are its own (no collectives).
int64_t images_that_fit(const Config& config, Network& network,
                        CudaLibrary& cuda, int64_t most);

// Bytes that a step of so many images takes; nothing where it does not fit.
using MeasureStep = std::function<std::optional<double>(int64_t images)>;

// The most images, up to `most`, of which a step stays within `budget` bytes; 0
// where one image does not. Two small steps give a line; where it meets the
// budget, real steps decide. The last one measured is the answer.
int64_t largest_step(const MeasureStep& measure, double budget, int64_t most);

}  // namespace chexnet
