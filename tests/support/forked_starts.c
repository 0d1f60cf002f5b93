// Many starts of a program that takes most of a start to load its libraries: it
// is loaded once, and each start is a fork of it just before main(), without
// exec.
//
// LD_PRELOAD=forked_starts.so PROGRAM SOCKET loads PROGRAM and waits for
// starts; it ends with the process that began it.
//
// forked_starts SOCKET PROGRAM ARGUMENTS... is one: with the open files,
// folder, environment, umask and limits of this process, and it ends as the
// program does. Signals are not passed on.
//
// What libraries read from the environment as they are loaded cannot be changed
// any more: with LD_PRELOAD or OMP_NUM_THREADS the program is started anew, and
// so it is where nobody waits at SOCKET.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kFiles = 200,
  kText = 128 << 10
};  // one message; a kernel takes 253 files and 208 KiB

struct start {
  int arguments, variables, files,
      file[kFiles];  // the numbers of the open files; the folder follows them
  mode_t mask;
  struct rlimit limits[RLIM_NLIMITS];
  char text[kText];  // arguments, then variables
};
static struct start start;

static struct sockaddr_un address(const char* path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  return at;
}

#ifdef SERVER
static int (*program)(int, char**, char**);

// Takes the start's place: its files get their numbers, from where none is in
// the way of another.
static void become(const int* received) {
  int moved[kFiles + 1];
  for (int i = 0; i <= start.files; ++i)
    moved[i] = fcntl(received[i], F_DUPFD, kFiles + 100);
  close_range(0, kFiles + 99, 0);
  for (int i = 0; i < start.files; ++i) dup2(moved[i], start.file[i]);
  const int failed = fchdir(moved[start.files]);
  close_range(kFiles + 100, ~0U, 0);
  if (failed) _exit(125);
  umask(start.mask);
  for (int i = 0; i < RLIM_NLIMITS; ++i) setrlimit(i, &start.limits[i]);
  for (int i = 1; i < NSIG; ++i) signal(i, SIG_DFL);
}

static int serve(int argc, char** argv, char** variables) {
  (void)argc, (void)variables;
  unsetenv("LD_PRELOAD");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGCHLD, SIG_IGN);
  char hidden[100];  // the name appears once somebody listens
  snprintf(hidden, sizeof hidden, "%s.new", argv[1]);
  const struct sockaddr_un at = address(hidden);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (bind(listener, (const struct sockaddr*)&at, sizeof at) ||
      listen(listener, 64) || rename(hidden, argv[1]))
    return 125;
  for (;;) {
    const int peer = accept(listener, NULL, NULL);
    if (peer < 0 || fork() != 0) {
      close(peer);
      continue;
    }
    signal(SIGCHLD, SIG_DFL);
    char control[CMSG_SPACE((kFiles + 1) * sizeof(int))];
    struct iovec part = {&start, sizeof start};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (recvmsg(peer, &message, 0) <= 0) _exit(125);
    int received[kFiles + 1];
    memcpy(received, CMSG_DATA(CMSG_FIRSTHDR(&message)),
           (start.files + 1) * sizeof(int));
    const pid_t child = fork();
    if (child == 0) {
      become(received);
      static char* words[kText];
      char* next = start.text;
      for (int i = 0; i < start.arguments + start.variables;
           ++i, next += strlen(next) + 1)
        words[i < start.arguments ? i : i + 1] = next;
      environ = words + start.arguments + 1;
      const int code = program(start.arguments, words, environ);
      fflush(NULL);
      _exit(code);  // LibTorch's end takes longer than all the rest
    }
    for (int i = 0; i <= start.files; ++i) close(received[i]);
    int status = 125 << 8;
    waitpid(child, &status, 0);
    _exit(write(peer, &status, sizeof status) != sizeof status);
  }
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                      void (*init)(void), void (*fini)(void),
                      void (*at_exit)(void), void* stack_end) {
  program = main;
  const __typeof__(&__libc_start_main) real =
      dlsym(RTLD_NEXT, "__libc_start_main");
  return real(serve, argc, argv, init, fini, at_exit, stack_end);
}
#else
static size_t length;

static int add(char** words) {
  int count = 0;
  for (; words[count]; ++count) {
    const size_t size = strlen(words[count]) + 1;
    if (length + size > kText) return -1;
    memcpy(start.text + length, words[count], size);
    length += size;
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc < 3) return 125;
  int files[kFiles + 1];
  for (int i = 0; i < kFiles; ++i)
    if (fcntl(i, F_GETFD) >= 0)
      files[start.files] = start.file[start.files] = i, ++start.files;
  files[start.files] = open(".", O_PATH | O_DIRECTORY);
  umask(start.mask = umask(0));
  for (int i = 0; i < RLIM_NLIMITS; ++i) getrlimit(i, &start.limits[i]);
  start.arguments = add(argv + 2);
  start.variables = add(environ);
  const struct sockaddr_un at = address(argv[1]);
  const int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (getenv("LD_PRELOAD") || getenv("OMP_NUM_THREADS") ||
      start.arguments < 0 || start.variables < 0 || files[start.files] < 0 ||
      connect(peer, (const struct sockaddr*)&at, sizeof at)) {
    close(files[start.files]);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
  }
  char control[CMSG_SPACE(sizeof files)];
  struct iovec part = {&start, offsetof(struct start, text) + length};
  struct msghdr message = {
      .msg_iov = &part,
      .msg_iovlen = 1,
      .msg_control = control,
      .msg_controllen = CMSG_SPACE((start.files + 1) * sizeof(int))};
  struct cmsghdr* const passed = CMSG_FIRSTHDR(&message);
  *passed = (struct cmsghdr){CMSG_LEN((start.files + 1) * sizeof(int)),
                             SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(passed), files, (start.files + 1) * sizeof(int));
  int status = 125 << 8;
  if (sendmsg(peer, &message, 0) < 0 ||
      read(peer, &status, sizeof status) != sizeof status)
    perror("forked_starts");
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 125;
}
#endif
