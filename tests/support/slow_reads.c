// Preloaded: each read of a file whose name ends with SLOW_NAME, and each
// rename to such a name or folder made with one, takes SLOW_MS longer; on rank SLOW_RANK alone where
// that is set, and only while SLOW_WHILE is there where that is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void wait_for(const char* path) {
  const char *name = getenv("SLOW_NAME"), *ms = getenv("SLOW_MS");
  if (!name || !ms) return;
  const size_t length = strlen(path), end = strlen(name);
  if (length < end || strcmp(path + length - end, name) != 0) return;
  const char *slow_rank = getenv("SLOW_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (slow_rank && (!rank || strcmp(rank, slow_rank) != 0)) return;
  const char* slow_while = getenv("SLOW_WHILE");
  if (slow_while && access(slow_while, F_OK) != 0) return;
  usleep(1000 * (unsigned)atoi(ms));
}

static void wait_for_open(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  wait_for(path);
}

ssize_t pread64(int fd, void* into, size_t count, off64_t offset) {
  static ssize_t (*real)(int, void*, size_t, off64_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread64");
  wait_for_open(fd);
  return real(fd, into, count, offset);
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread");
  wait_for_open(fd);
  return real(fd, into, count, offset);
}

int mkdir(const char* path, mode_t mode) {
  static int (*real)(const char*, mode_t);
  if (!real) real = dlsym(RTLD_NEXT, "mkdir");
  wait_for(path);
  return real(path, mode);
}

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (!real) real = dlsym(RTLD_NEXT, "rename");
  wait_for(to);
  return real(from, to);
}
