// NCCL blocks in its start, for ever when another rank never joins, and cannot
// be called off. So a separate thread does it, which is abandoned when it does
// not come back in time. NCCL 2.22 and later would connect each algorithm in
// the first call that needs it (another size, another collective), and block
// there: NCCL_RUNTIME_CONNECT=0 has the start connect them all. So later calls
// do not block: a later hang is on the device, where the communicator polls
// events.
#include "nccl_start.hpp"

#include <cstdlib>
#include <span>

#include "check_cuda.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "time_limit.hpp"

namespace chexnet {
namespace {

// A first collective shows that the connections carry data: a later hang is
// then the network's, not the set-up's.
ncclComm_t start_here(const ncclUniqueId& id, int device, int ranks, int rank,
                      cudaStream_t stream) {
  check_cuda(cudaSetDevice(device));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t comm = nullptr;
  check_nccl(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), comm,
             rank);
  void* value = nullptr;
  check_cuda(cudaMalloc(&value, sizeof(float)));
  check_cuda(cudaMemsetAsync(value, 0, sizeof(float), stream));
  check_nccl(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, comm, stream),
             comm, rank);
  check_cuda(cudaStreamSynchronize(stream));
  check_cuda(cudaFree(value));
  return comm;
}

}  // namespace

std::string of_rank(int rank) { return "rank " + std::to_string(rank) + ": "; }

void check_nccl(ncclResult_t rc, ncclComm_t comm, int rank,
                std::source_location at) {
  if (rc == ncclSuccess) return;
  throw DeviceError(
      "[nccl] {}{} ({}): {}. Hint: see the other ranks' logs; NCCL_DEBUG=INFO "
      "shows more",
      of_rank(rank), ncclGetErrorString(rc), at.function_name(),
      ncclGetLastError(comm));
}

ncclComm_t start_nccl(Communicator& host, int device, cudaStream_t stream,
                      double timeout_s) {
  ncclUniqueId id{};
  const int rank = host.rank();
  constexpr int kKeepExisting = 0;
  setenv("NCCL_RUNTIME_CONNECT", "0", kKeepExisting);
  // Where a step is recorded, ranks of a host would shake hands over buffers in
  // the call, and wait there for one whose recording fails.
  setenv("NCCL_GRAPH_REGISTER", "0", kKeepExisting);
  if (rank == 0) check_nccl(ncclGetUniqueId(&id), nullptr, rank);
  host.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  const auto comm =
      within(timeout_s, [id, device, ranks = host.size(), rank, stream] {
        return start_here(id, device, ranks, rank, stream);
      });
  if (!comm)
    throw HangError(
        "[nccl] {}NCCL's start did not finish in {} s. Hint: can the hosts "
        "reach each other on the interface of NCCL_SOCKET_IFNAME? "
        "NCCL_DEBUG=INFO shows more",
        of_rank(rank), fixed(timeout_s, 0));
  return *comm;
}

}  // namespace chexnet
