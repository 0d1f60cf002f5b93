// Preloaded by tests/stress/crash_points_test.py: every call that changes a file below the folder
// $POINTS_BELOW (an absolute path) is a point, numbered from 1 on. What happens at point $POINTS_AT:
//   POINTS_DO=record       nothing (the default): the calls are only written down
//   POINTS_DO=kill         the process kills itself before the call
//   POINTS_DO=kill-half    the same, once the first half of a write is written
//   POINTS_DO=short        the first half of a write is written, as its result says
//   POINTS_DO=ERROR        the call fails with ENOSPC, EDQUOT, EIO or EROFS. With POINTS_STAYS=1 so do
//                          all later ones that this error can come from.
// With POINTS_NO_TMPFILE there are no files without a name.
// $POINTS_LOG gets a line for each point before the call is made, tabs between:
//   number call result inode offset count place flags path other-path
// and the bytes that were written go to $POINTS_DATA (from `place` on), where it is named.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name, type, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
enum { kPath = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long points;
static int log_fd = -1, data_fd = -1;
static off_t place;

struct point {
  const char* call;
  char path[kPath], other[kPath];
  unsigned long inode;
  long offset, count, flags;
  const void* bytes;  // of a write
};

static const char* wish(void) {
  const char* text = getenv("POINTS_DO");
  return text != NULL ? text : "record";
}

static int is_below(const char* path) {
  const char* folder = getenv("POINTS_BELOW");
  const size_t length = folder != NULL ? strlen(folder) : 0;
  if (length == 0 || strncmp(path, folder, length) != 0) return 0;
  return path[length] == '/' || path[length] == '\0';
}

static void path_of_fd(int fd, char* into) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, into, kPath - 1);
  into[length > 0 ? length : 0] = '\0';
}

static void full_path(int folder, const char* path, char* into) {
  char start[kPath] = "";
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (getcwd(start, sizeof start) == NULL) start[0] = '\0';
    } else {
      path_of_fd(folder, start);
    }
  }
  int fd = -1, used = 0;
  if (sscanf(path, "/proc/self/fd/%d%n", &fd, &used) == 1 && path[used] == '\0')
    path_of_fd(fd, into);
  else if (start[0] == '\0')
    snprintf(into, kPath, "%s", path);
  else
    snprintf(into, kPath, "%.2000s/%.2000s", start, path);
}

static void of_fd(struct point* p, int fd) {
  path_of_fd(fd, p->path);
  struct stat info;
  if (fstat(fd, &info) == 0) p->inode = info.st_ino;
}

static void open_logs(void) {
  if (log_fd >= 0) return;
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const char* log = getenv("POINTS_LOG");
  const char* data = getenv("POINTS_DATA");
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  log_fd = real(log != NULL ? log : "/dev/null", flags, 0600);
  if (data != NULL) data_fd = real(data, flags, 0600);
}

// The errors that a call can have: a full disk refuses no removal.
static int can_fail(const char* call, int error) {
  const int grows = strcmp(call, "unlink") != 0 && strcmp(call, "rmdir") != 0 &&
                    strcmp(call, "close") != 0 && strcmp(call, "truncate") != 0;
  if (error == ENOSPC || error == EDQUOT) return grows;
  if (error == EROFS) return strcmp(call, "close") != 0 && strcmp(call, "fsync") != 0;
  return 1;
}

static int error_named(const char* text) {
  if (strcmp(text, "ENOSPC") == 0) return ENOSPC;
  if (strcmp(text, "EDQUOT") == 0) return EDQUOT;
  if (strcmp(text, "EIO") == 0) return EIO;
  if (strcmp(text, "EROFS") == 0) return EROFS;
  return 0;
}

static ssize_t plain_write(int fd, const void* bytes, size_t count) {
  return REAL("write", ssize_t, int, const void*, size_t)(fd, bytes, count);
}

static void note(const struct point* p, const char* result) {
  char line[2 * kPath + 256];
  const int length =
      snprintf(line, sizeof line, "%ld\t%s\t%s\t%lu\t%ld\t%ld\t%ld\t%lo\t%s\t%s\n", points, p->call,
               result, p->inode, p->offset, p->count, (long)place, p->flags, p->path, p->other);
  plain_write(log_fd, line, (size_t)length);
  if (p->bytes == NULL || data_fd < 0) return;
  plain_write(data_fd, p->bytes, (size_t)p->count);
  place += p->count;
}

enum action { kGoOn, kFail, kHalf, kHalfAndDie };

// Called with the mutex held. kFail: errno is set.
static enum action decide(const struct point* p) {
  open_logs();
  ++points;
  const char* what = wish();
  const char* at_text = getenv("POINTS_AT");
  const long at = at_text != NULL ? atol(at_text) : 0;
  const int error = error_named(what);
  const int stays = getenv("POINTS_STAYS") != NULL && at > 0 && points > at;
  if (error != 0 && (points == at || stays) && can_fail(p->call, error)) {
    note(p, what);
    errno = error;
    return kFail;
  }
  if (points == at && strcmp(what, "kill") == 0) {
    note(p, "kill");
    kill(getpid(), SIGKILL);
  }
  if (points == at && p->bytes != NULL && p->count > 1) {
    if (strcmp(what, "kill-half") == 0 || strcmp(what, "short") == 0) {
      note(p, what);
      return strcmp(what, "short") == 0 ? kHalf : kHalfAndDie;
    }
  }
  note(p, "-");
  return kGoOn;
}

static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) {
  const int error = errno;
  pthread_mutex_unlock(&mutex);
  errno = error;
}

// A call that is made or fails.
#define WITH(p, result_type, failed, real_call) \
  do {                                          \
    lock();                                     \
    result_type got = failed;                   \
    if (decide(&(p)) != kFail) got = real_call; \
    unlock();                                   \
    return got;                                 \
  } while (0)

static int opens_to_write(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

static int open_as(const char* name, int folder, const char* path, int flags, mode_t mode) {
  int (*real)(int, const char*, int, ...) =
      (int (*)(int, const char*, int, ...))dlsym(RTLD_NEXT, name);
  struct point p = {.call = "open", .flags = flags};
  full_path(folder, path, p.path);
  if ((flags & O_TMPFILE) == O_TMPFILE && getenv("POINTS_NO_TMPFILE") != NULL && is_below(p.path)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (!opens_to_write(flags) || !is_below(p.path)) return real(folder, path, flags, mode);
  WITH(p, int, -1, real(folder, path, flags, mode));
}

#define MODE                                                    \
  mode_t mode = 0;                                              \
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                          \
    va_start(arguments, flags);                                 \
    mode = va_arg(arguments, mode_t);                           \
    va_end(arguments);                                          \
  }

int open(const char* path, int flags, ...) {
  MODE return open_as("openat", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE return open_as("openat64", AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE return open_as("openat", folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE return open_as("openat64", folder, path, flags, mode);
}

static FILE* fopen_as(const char* name, const char* path, const char* mode) {
  FILE* (*real)(const char*, const char*) = REAL(name, FILE*, const char*, const char*);
  struct point p = {.call = "open"};
  if (mode[0] == 'w') p.flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (mode[0] == 'a') p.flags = O_WRONLY | O_CREAT | O_APPEND;
  full_path(AT_FDCWD, path, p.path);
  if (p.flags == 0 || !is_below(p.path)) return real(path, mode);
  WITH(p, FILE*, NULL, real(path, mode));
}
FILE* fopen(const char* path, const char* mode) { return fopen_as("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fopen_as("fopen64", path, mode); }

static ssize_t write_as(const char* name, int fd, const void* bytes, size_t count, off_t at) {
  const int here = at < 0;  // at the descriptor's file offset
  struct point p = {.call = "write", .count = (long)count, .bytes = bytes};
  ssize_t (*write_here)(int, const void*, size_t) =
      REAL("write", ssize_t, int, const void*, size_t);
  ssize_t (*write_there)(int, const void*, size_t, off_t) =
      REAL(here ? "pwrite" : name, ssize_t, int, const void*, size_t, off_t);
  of_fd(&p, fd);
  if (!is_below(p.path))
    return here ? write_here(fd, bytes, count) : write_there(fd, bytes, count, at);
  p.offset = here ? (long)lseek(fd, 0, SEEK_CUR) : (long)at;
  if (here && (fcntl(fd, F_GETFL) & O_APPEND) != 0) p.offset = -1;  // at the end
  lock();
  const enum action action = decide(&p);
  ssize_t got = -1;
  if (action != kFail) {
    const size_t wanted = action == kGoOn ? count : count / 2;
    got = here ? write_here(fd, bytes, wanted) : write_there(fd, bytes, wanted, at);
    if (action == kHalfAndDie) kill(getpid(), SIGKILL);
  }
  unlock();
  return got;
}
ssize_t write(int fd, const void* bytes, size_t count) {
  return write_as("write", fd, bytes, count, -1);
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  return write_as("pwrite", fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t at) {
  return write_as("pwrite64", fd, bytes, count, at);
}

// As one write: libstdc++ writes what its buffer has and what is new in one call.
ssize_t writev(int fd, const struct iovec* parts, int count) {
  char path[kPath];
  path_of_fd(fd, path);
  if (!is_below(path)) return REAL("writev", ssize_t, int, const struct iovec*, int)(fd, parts, count);
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  char* all = malloc(size + 1);
  size_t at = 0;
  for (int i = 0; i < count; ++i) {
    memcpy(all + at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
  const ssize_t got = write(fd, all, size);
  const int error = errno;
  free(all);
  errno = error;
  return got;
}

static int sync_as(const char* name, int fd) {
  int (*real)(int) = REAL(name, int, int);
  struct point p = {.call = "fsync"};
  of_fd(&p, fd);
  if (!is_below(p.path)) return real(fd);
  WITH(p, int, -1, real(fd));
}
int fsync(int fd) { return sync_as("fsync", fd); }
int fdatasync(int fd) { return sync_as("fdatasync", fd); }

// Of a descriptor that can write; the kernel closes it whatever the result is.
int close(int fd) {
  int (*real)(int) = REAL("close", int, int);
  struct point p = {.call = "close"};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return real(fd);
  of_fd(&p, fd);
  if (!is_below(p.path)) return real(fd);
  lock();
  const enum action action = decide(&p);
  const int error = errno, got = real(fd);
  if (action == kFail) errno = error;
  unlock();
  return action == kFail ? -1 : got;
}

static int truncate_as(const char* name, int fd, off_t size) {
  int (*real)(int, off_t) = REAL(name, int, int, off_t);
  struct point p = {.call = "truncate", .count = (long)size};
  of_fd(&p, fd);
  if (!is_below(p.path)) return real(fd, size);
  WITH(p, int, -1, real(fd, size));
}
int ftruncate(int fd, off_t size) { return truncate_as("ftruncate", fd, size); }
int ftruncate64(int fd, off_t size) { return truncate_as("ftruncate64", fd, size); }

static int fallocate_as(const char* name, int fd, int mode, off_t at, off_t size) {
  int (*real)(int, int, off_t, off_t) = REAL(name, int, int, int, off_t, off_t);
  struct point p = {.call = "fallocate", .offset = (long)at, .count = (long)size, .flags = mode};
  of_fd(&p, fd);
  if (!is_below(p.path)) return real(fd, mode, at, size);
  WITH(p, int, -1, real(fd, mode, at, size));
}
int fallocate(int fd, int mode, off_t at, off_t size) {
  return fallocate_as("fallocate", fd, mode, at, size);
}
int fallocate64(int fd, int mode, off_t at, off_t size) {
  return fallocate_as("fallocate64", fd, mode, at, size);
}

static int rename_as(const char* call, int from_folder, const char* from, int to_folder,
                     const char* to) {
  struct point p = {.call = call};
  full_path(from_folder, from, p.path);
  full_path(to_folder, to, p.other);
  int (*real)(int, const char*, int, const char*) =
      REAL("renameat", int, int, const char*, int, const char*);
  if (!is_below(p.other) && !is_below(p.path)) return real(from_folder, from, to_folder, to);
  WITH(p, int, -1, real(from_folder, from, to_folder, to));
}
int rename(const char* from, const char* to) {
  return rename_as("rename", AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return rename_as("rename", from_folder, from, to_folder, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  int (*real)(int, const char*, int, const char*, int) =
      REAL("linkat", int, int, const char*, int, const char*, int);
  struct point p = {.call = "link"};
  full_path(from_folder, from, p.path);
  full_path(to_folder, to, p.other);
  if (!is_below(p.other)) return real(from_folder, from, to_folder, to, flags);
  struct stat info;
  if (fstatat(from_folder, from, &info, 0) == 0) p.inode = info.st_ino;
  WITH(p, int, -1, real(from_folder, from, to_folder, to, flags));
}
int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

// `path` is what the link says.
int symlink(const char* content, const char* path) {
  int (*real)(const char*, const char*) = REAL("symlink", int, const char*, const char*);
  struct point p = {.call = "symlink"};
  snprintf(p.other, kPath, "%s", content);
  full_path(AT_FDCWD, path, p.path);
  if (!is_below(p.path)) return real(content, path);
  WITH(p, int, -1, real(content, path));
}

static int remove_as(int folder, const char* path, int flags) {
  int (*real)(int, const char*, int) = REAL("unlinkat", int, int, const char*, int);
  struct point p = {.call = (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink"};
  full_path(folder, path, p.path);
  struct stat info;
  const int is_there = fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there || !is_below(p.path)) return real(folder, path, flags);
  WITH(p, int, -1, real(folder, path, flags));
}
int unlinkat(int folder, const char* path, int flags) { return remove_as(folder, path, flags); }
int unlink(const char* path) { return remove_as(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return remove_as(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  struct stat info;
  const int is_folder = lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
  return remove_as(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}

static int mkdir_as(int folder, const char* path, mode_t mode) {
  int (*real)(int, const char*, mode_t) = REAL("mkdirat", int, int, const char*, mode_t);
  struct point p = {.call = "mkdir"};
  full_path(folder, path, p.path);
  struct stat info;
  const int is_there = fstatat(folder, path, &info, 0) == 0;
  if (is_there || !is_below(p.path)) return real(folder, path, mode);
  WITH(p, int, -1, real(folder, path, mode));
}
int mkdir(const char* path, mode_t mode) { return mkdir_as(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) { return mkdir_as(folder, path, mode); }
