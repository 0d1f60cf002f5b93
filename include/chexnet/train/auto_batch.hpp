// train.batch: auto.
#pragma once

#include <cstdint>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/network.hpp"

namespace chexnet {

// The largest global batch whose memory plan fits every rank: activations by the engine's plan,
// optimizer state and the loader's ring, in nine tenths of `available_bytes` of the rank's host,
// shared with its neighbors; no more than `images`. Collective. ConfigError: nobody plans (ATen's
// operators), or not even one image per rank fits.
std::int64_t auto_batch(const Config& config, const Network& network, Communicator& comm,
                        std::int64_t images, std::uint64_t available_bytes);

}  // namespace chexnet
