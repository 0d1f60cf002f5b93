// Preloaded: where a parser would end at a failed assertion it does what ROGUE names, as a file that has taken it over
// would. The result goes to standard output, and then the process goes on to its end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

void __assert_fail(const char* text, const char* file, unsigned line, const char* function) {
  (void)text, (void)file, (void)line, (void)function;
  const char* rogue = getenv("ROGUE");
  if (rogue && !strcmp(rogue, "socket")) socket(AF_INET, SOCK_STREAM, 0);
  if (rogue && !strcmp(rogue, "execve")) execl("/bin/touch", "touch", "stolen", (char*)0);
  if (rogue && !strcmp(rogue, "fork")) fork();
  if (rogue && !strcmp(rogue, "ptrace")) ptrace(PTRACE_ATTACH, getppid(), 0, 0);
  if (rogue && !strcmp(rogue, "open")) open("stolen", O_WRONLY | O_CREAT, 0600);
  if (rogue && !strcmp(rogue, "unlink")) unlink("precious");
  abort();
}
