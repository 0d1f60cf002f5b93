// Beginning of a NCCL communicator, and NCCL's errors as exceptions.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <source_location>
#include <string>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// "rank 3: ", for messages.
std::string of_rank(int rank);

// `comm` may be null.
void check_nccl(ncclResult_t rc, ncclComm_t comm, int rank,
                std::source_location at = std::source_location::current());

// Collective over the ranks of `host`. A blocking communicator of the GPU
// `device`, whose connections are open for every collective and size: a first
// all-reduce has travelled on `stream`. HangError after `timeout_s`.
ncclComm_t start_nccl(Communicator& host, int device, cudaStream_t stream,
                      double timeout_s);

}  // namespace chexnet
