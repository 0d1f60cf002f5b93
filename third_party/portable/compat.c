// What g++ 12 and its C library's headers ask for that glibc 2.28 lacks, in
// terms of what it has. Linked into each file of a portable build, hidden in
// it: nothing else in the process sees these. Each takes the C library's own
// function where the machine has one and it does more.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))
struct stat;

// The stat family, functions of their own since 2.33. The first argument is the
// layout of struct stat, of which x86-64 has had one.
enum { kStatLayout = 1 };
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);
#define STAT_FAMILY(suffix)                                                 \
  HIDDEN int stat##suffix(const char* path, struct stat* to) {              \
    return __xstat(kStatLayout, path, to);                                  \
  }                                                                         \
  HIDDEN int lstat##suffix(const char* path, struct stat* to) {             \
    return __lxstat(kStatLayout, path, to);                                 \
  }                                                                         \
  HIDDEN int fstat##suffix(int file, struct stat* to) {                     \
    return __fxstat(kStatLayout, file, to);                                 \
  }                                                                         \
  HIDDEN int fstatat##suffix(int folder, const char* path, struct stat* to, \
                             int flags) {                                   \
    return __fxstatat(kStatLayout, folder, path, to, flags);                \
  }
STAT_FAMILY()
STAT_FAMILY(64)

// Since 2.32. Never single-threaded: counts are atomic then.
HIDDEN char __libc_single_threaded = 0;

static int64_t ns_of(struct timespec t) {
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Since 2.30. Before, libstdc++ itself waited by the wall clock and looked at
// the steady one afterwards, as its callers still do.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition,
                                  pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  typedef int (*Function)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                          const struct timespec*);
  static Function real;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    Function found = (Function)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    __atomic_store_n(&real, found, __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  Function function = __atomic_load_n(&real, __ATOMIC_RELAXED);
  if (function) return function(condition, mutex, clock, until);
  if (clock == CLOCK_REALTIME)
    return pthread_cond_timedwait(condition, mutex, until);
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t ns = ns_of(wall) + ns_of(*until) - ns_of(now);
  if (ns < 0) ns = 0;
  const struct timespec wall_until = {ns / 1000000000, ns % 1000000000};
  return pthread_cond_timedwait(condition, mutex, &wall_until);
}

// Since 2.34: fork() without the handlers of pthread_atfork().
HIDDEN pid_t _Fork(void) {
  return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

// Since 2.30.
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// Since 2.36; libstdc++'s random_device asks for it.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

#ifdef CHEXNET_COMPAT_PROGRAM
// Before 2.34 a program ran its own constructors: its start file handed this
// to __libc_start_main, where today's hands nothing. Newer C libraries call it
// for programs that old. (--wrap=__libc_start_main)
typedef void (*Constructor)(int, char**, char**);
extern Constructor __preinit_array_start[] HIDDEN;
extern Constructor __preinit_array_end[] HIDDEN;
extern Constructor __init_array_start[] HIDDEN;
extern Constructor __init_array_end[] HIDDEN;
extern void _init(void);

static void run_constructors(int argc, char** argv, char** environment) {
  for (Constructor* f = __preinit_array_start; f != __preinit_array_end; ++f)
    (*f)(argc, argv, environment);
  _init();
  for (Constructor* f = __init_array_start; f != __init_array_end; ++f)
    (*f)(argc, argv, environment);
}

typedef int (*Main)(int, char**, char**);
int __real___libc_start_main(Main, int, char**, Constructor, void (*)(void),
                             void (*)(void), void*);
HIDDEN int __wrap___libc_start_main(Main program, int argc, char** argv,
                                    Constructor init, void (*fini)(void),
                                    void (*loader_fini)(void), void* stack) {
  return __real___libc_start_main(program, argc, argv,
                                  init ? init : run_constructors, fini,
                                  loader_fini, stack);
}
#endif
