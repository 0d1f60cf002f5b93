// The end of a process whose main thread may hang.
#pragma once

namespace chexnet {

// Ends this process at once with `exit_code`. A launcher (mpirun, orted, prted) that is still there
// `patience_s` later is killed by a child that outlives us: mpirun waits for ever for a host that
// is cut off. Any thread.
[[noreturn]] void exit_and_end_launcher(int exit_code, int patience_s);

}  // namespace chexnet
