// Steps as the fake GPU sees them, for tests that count what a step asks of it.
// One sum of four numbers over all ranks belongs to each step, before its work
// is launched (train/training_loop.cpp). At each such sum a line of
// FILE.<rank> gets the counters since the start, and how much work the compute
// stream has before it.
#pragma once

#include <memory>
#include <string>

#include "chexnet/comm/communicator.hpp"

namespace fake_gpu {

// Throws where the file cannot be written.
std::unique_ptr<chexnet::Communicator> log_agreements(
    std::unique_ptr<chexnet::Communicator> host, const std::string& file);

}  // namespace fake_gpu
