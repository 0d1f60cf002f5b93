// train.batch: auto.
#pragma once

#include <cstdint>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/network.hpp"

namespace chexnet {

struct BatchLimits {
  std::int64_t images = 1;  // that there are to train on; the batch has no more
  std::uint64_t host_bytes = 0;  // of memory that are free on this rank's host
};

// The largest global batch whose memory plan fits every rank: activations by
// the engine's plan, optimizer state and the loader's ring, in nine tenths of
// the host's memory, which its ranks share. Collective. ConfigError: nobody
// plans (ATen's operators), or not even one image per rank fits.
std::int64_t auto_batch(const Config& config, const Network& network,
                        Communicator& comm, const BatchLimits& limits);

}  // namespace chexnet
