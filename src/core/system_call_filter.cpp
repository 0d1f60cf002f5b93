#include "chexnet/core/system_call_filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace chexnet {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;  // no filter
#endif

// Reading, memory, and how a process ends, also by abort(). Calls that only
// glibc's start or another version of it needs fail as on an old kernel.
constexpr std::initializer_list<uint32_t> kAllowed = {
    __NR_read,
    __NR_pread64,
    __NR_readv,
    __NR_lseek,
    __NR_close,
    __NR_fstat,
    __NR_newfstatat,
    __NR_statx,
    __NR_getdents64,
    __NR_readlinkat,
    __NR_getcwd,
    __NR_faccessat,
    __NR_mmap,
    __NR_munmap,
    __NR_mremap,
    __NR_mprotect,
    __NR_madvise,
    __NR_brk,
    __NR_futex,
    __NR_sched_yield,
    __NR_getpid,
    __NR_gettid,
    __NR_getuid,
    __NR_geteuid,
    __NR_uname,
    __NR_sysinfo,
    __NR_getrandom,
    __NR_nanosleep,
    __NR_clock_gettime,
    __NR_clock_nanosleep,
    __NR_gettimeofday,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_exit,
    __NR_exit_group,
    __NR_restart_syscall,
    // A thread of a decoder (OpenJPEG's).
    __NR_set_robust_list,
    __NR_rseq,
    __NR_sched_getaffinity,
#if defined(__x86_64__)
    __NR_stat,
    __NR_lstat,
    __NR_access,
    __NR_readlink,
    __NR_time,
#endif
};
// We never need one of them: the caller is no longer our code.
constexpr std::initializer_list<uint32_t> kDeadly = {
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_sendto,
    __NR_sendmsg,
    __NR_execve,
    __NR_execveat,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
#if defined(__x86_64__)
    __NR_fork,
    __NR_vfork,
    __NR_creat,
#endif
};

using Filter = std::vector<sock_filter>;

void load(Filter& filter, size_t offset) {
  filter.push_back(
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
}
// The low half of an argument: those that we check are ints. Its offset is that
// of a little-endian machine.
void load_argument(Filter& filter, size_t number) {
  load(filter, offsetof(seccomp_data, args) + number * sizeof(uint64_t));
}
void end_with(Filter& filter, uint32_t action) {
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, action));
}
// `action` where the loaded value is `value`; else goes on.
void when(Filter& filter, uint32_t value, uint32_t action) {
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  end_with(filter, action);
}
// Of a call whose number is `call` the lines of `rule`, which ends by itself.
void of_call(Filter& filter, uint32_t call, const Filter& rule) {
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0,
                            static_cast<uint8_t>(rule.size())));
  filter.insert(filter.end(), rule.begin(), rule.end());
}

// A file may be opened to be read.
Filter opens_to_read(size_t argument) {
  constexpr uint32_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC;
  Filter rule;
  load_argument(rule, argument);
  rule.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWriting, 0, 1));
  end_with(rule, SECCOMP_RET_KILL_PROCESS);
  end_with(rule, SECCOMP_RET_ALLOW);
  return rule;
}

// A thread, no process. (clone3, whose flags a filter cannot see, fails, and
// then glibc asks for clone.)
Filter starts_a_thread() {
  Filter rule;
  load_argument(rule, 0);
  rule.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
  end_with(rule, SECCOMP_RET_KILL_PROCESS);
  end_with(rule, SECCOMP_RET_ALLOW);
  return rule;
}

// The first argument is one of these; otherwise EBADF, or EPERM for a process.
Filter first_is(std::initializer_list<int> values, uint32_t error) {
  Filter rule;
  load_argument(rule, 0);
  for (const int value : values)
    when(rule, static_cast<uint32_t>(value), SECCOMP_RET_ALLOW);
  end_with(rule, SECCOMP_RET_ERRNO | error);
  return rule;
}

Filter reading_only(int out) {
  Filter filter;
  load(filter, offsetof(seccomp_data, arch));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0));
  end_with(filter,
           SECCOMP_RET_KILL_PROCESS);  // 32-bit calls have other numbers
  load(filter, offsetof(seccomp_data, nr));
  for (const uint32_t call : kAllowed) when(filter, call, SECCOMP_RET_ALLOW);
  for (const uint32_t call : kDeadly)
    when(filter, call, SECCOMP_RET_KILL_PROCESS);
  of_call(filter, __NR_openat, opens_to_read(2));
#if defined(__x86_64__)
  of_call(filter, __NR_open, opens_to_read(1));
#endif
  of_call(filter, __NR_clone, starts_a_thread());
  const auto streams = {out, STDOUT_FILENO, STDERR_FILENO};
  of_call(filter, __NR_write, first_is(streams, EBADF));
  of_call(filter, __NR_writev, first_is(streams, EBADF));
  // Its limits: none of them goes above what was fixed before.
  of_call(filter, __NR_prlimit64, first_is({0}, EPERM));
  of_call(filter, __NR_tgkill, first_is({::getpid()}, EPERM));  // abort()
  end_with(filter, SECCOMP_RET_ERRNO | ENOSYS);
  return filter;
}

void close_all_but(int out) {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(nowhere, stream);
  const auto first = static_cast<unsigned>(STDERR_FILENO) + 1;
  const auto kept = static_cast<unsigned>(out);
  if (::syscall(SYS_close_range, kept + 1, UINT_MAX, 0U) == 0) {
    if (kept > first) ::syscall(SYS_close_range, first, kept - 1, 0U);
    return;
  }
  // Kernels before 5.9.
  constexpr rlim_t kMost = 1 << 20;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<int>(std::min(limit.rlim_cur, kMost));
  for (int file = STDERR_FILENO + 1; file < end; ++file)
    if (file != out) ::close(file);
}

}  // namespace

bool allow_reading_only(int out) {
  close_all_but(out);
  if (kMachine == 0) return false;
  Filter filter = reading_only(out);
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           filter.data()};
  // Without it only root may set a filter; nobody gains rights any more.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace chexnet
