// The end of a process whose main thread may hang.
#pragma once

namespace chexnet {

// Ends this process at once with `exit_code`. A launcher (mpirun, orted, prted)
// that is still there `timeout_s` later is killed by a child that outlives us:
// mpirun waits forever for a host that is cut off. Any thread; takes no lock,
// so what stdout still holds is lost.
constexpr int kLauncherTimeout_s = 3;
[[noreturn]] void exit_and_end_launcher(int exit_code,
                                        int timeout_s = kLauncherTimeout_s);

// The same from a timer, `seconds` from now: before what may never return, such
// as a write to a file system or a pipe that hangs.
void exit_within(int seconds, int exit_code);

}  // namespace chexnet
