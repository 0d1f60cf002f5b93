// Preloaded by tests: reads below $FAIL_PATH fail as those of a file server in trouble. Starts with
// read number $FAIL_FROM (opens and preads count) and lasts $FAIL_TIMES reads.
//   FAIL_AS=EIO     opening and reading fail
//   FAIL_AS=ESTALE  reading fails, for ever on a descriptor that failed once: only a new one works
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long reads;
static atomic_int stale[4096];  // [descriptor]

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atol(text) : otherwise;
}

static int is_meant(const char* path) {
  const char* part = getenv("FAIL_PATH");
  return part != NULL && strstr(path, part) != NULL;
}

static int fails_now(void) {
  const long at = atomic_fetch_add(&reads, 1), from = number("FAIL_FROM", 0);
  return at >= from && at < from + number("FAIL_TIMES", 1);
}

static int as_stale(void) {
  const char* as = getenv("FAIL_AS");
  return as != NULL && strcmp(as, "ESTALE") == 0;
}

static int open_as(const char* name, const char* path, int flags, mode_t mode) {
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  if (!as_stale() && is_meant(path) && fails_now()) {
    errno = EIO;
    return -1;
  }
  const int fd = real(path, flags, mode);
  if (fd >= 0 && fd < 4096) stale[fd] = 0;
  return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as("open64", path, flags, mode);
}

static ssize_t pread_as(const char* name, int fd, void* into, size_t count, off_t offset) {
  ssize_t (*real)(int, void*, size_t, off_t) =
      (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, name);
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  if (!is_meant(path) || fd >= 4096) return real(fd, into, count, offset);
  if (stale[fd] || fails_now()) {
    stale[fd] = as_stale();
    errno = as_stale() ? ESTALE : EIO;
    return -1;
  }
  return real(fd, into, count, offset);
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  return pread_as("pread", fd, into, count, offset);
}
ssize_t pread64(int fd, void* into, size_t count, off_t offset) {
  return pread_as("pread64", fd, into, count, offset);
}
