// The system calls that a process which reads hostile bytes can still make if
// they take it over: seccomp's filter (Linux, `man 2 seccomp`) with an
// allow-list.
#pragma once

namespace chexnet {

// From here on this process, of one thread, may read files, take memory, and
// write to `out` and to stdout and stderr, which lead nowhere from now on. Its
// other open files are closed. It ends by SIGSYS where it asks for a socket,
// another program or process, ptrace, or a file to write to; any other call
// fails with ENOSYS. There is no way back. False: this kernel, or the
// container's rules, refuse a filter; the files are closed nevertheless.
bool allow_reading_only(int out);

}  // namespace chexnet
