// Preloaded: each read of a file whose name ends with SLOW_NAME takes SLOW_MS longer, on rank SLOW_RANK
// where that is set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(int fd) {
  const char *name = getenv("SLOW_NAME"), *ms = getenv("SLOW_MS");
  if (!name || !ms) return;
  const char *slow_rank = getenv("SLOW_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (slow_rank && (!rank || strcmp(rank, slow_rank) != 0)) return;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < (ssize_t)strlen(name)) return;
  path[length] = 0;
  if (strcmp(path + length - strlen(name), name) == 0) usleep(1000 * (unsigned)atoi(ms));
}

ssize_t pread64(int fd, void* into, size_t count, off64_t offset) {
  static ssize_t (*real)(int, void*, size_t, off64_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread64");
  wait_for(fd);
  return real(fd, into, count, offset);
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread");
  wait_for(fd);
  return real(fd, into, count, offset);
}
