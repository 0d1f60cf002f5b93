// Steps as the fake GPU sees them, for tests that count what a step asks of it.
// A collective on the host belongs to each: a sum of four numbers to a step of
// training (train/training_loop.cpp), a maximum of one to a batch of an
// evaluation (train/score_images.cpp), before its work is launched. At each
// collective a line of FILE.<rank> gets how many numbers it has, the counters
// since the start, and how much work the compute stream has before it.
#pragma once

#include <memory>
#include <string>

#include "chexnet/comm/communicator.hpp"

namespace fake_gpu {

// Throws where the file cannot be written.
std::unique_ptr<chexnet::Communicator> log_agreements(
    std::unique_ptr<chexnet::Communicator> host, const std::string& file);

}  // namespace fake_gpu
