// NCCL without a GPU, on the fake CUDA runtime, for tests: ranks are threads or
// processes of this host that meet in shared memory. A collective is work of
// its CUDA stream. What ncclCommAbort and ncclCommDestroy free is really freed,
// so that the address sanitizer sees a use after them.
#pragma once

#include <nccl.h>

namespace fake_nccl {

// The faults. Collectives are counted from 0 on each communicator; -1: none.
// From the environment unless set_faults() is called, as in
// FAKE_NCCL_FAULTS="rank=1,never_completes_at=3".
struct Faults {
  int rank = -1;  // that has them; -1: all
  double slow_start_s = 0;
  bool init_never_ends = false;
  // A call that connects never returns: the start where NCCL_RUNTIME_CONNECT
  // is 0, else the first collective of another kind or size than the very
  // first, until the fault is taken back.
  bool connecting_hangs = false;
  int never_completes_at = -1;  // a link that is down
  // The rank sends to the next one of the ring through host memory, as far as
  // its log says (NCCL_DEBUG).
  bool through_host_memory = false;
  // The collective never ends, and the asynchronous error is
  // ncclRemoteError.
  int remote_error_at = -1;
};
void set_faults(const Faults& faults);

// Communicators that are neither destroyed nor aborted.
int communicators();

}  // namespace fake_nccl
