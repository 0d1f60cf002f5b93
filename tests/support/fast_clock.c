// Preloaded: the steady clock goes CLOCK_FACTOR times as fast for the process, and so do waits until a time of that clock.
// No test waits ten minutes for a deadline of ten minutes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static long long factor(void) {
  const char* text = getenv("CLOCK_FACTOR");
  return text ? atoll(text) : 1;
}

static void scale(struct timespec* time, long long by, long long over) {
  const long long ns = (time->tv_sec * 1000000000LL + time->tv_nsec) / over * by;
  time->tv_sec = ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int rc = real(clock, time);
  if (rc == 0 && clock == CLOCK_MONOTONIC) scale(time, factor(), 1);
  return rc;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  struct timespec time = *until;
  if (clock == CLOCK_MONOTONIC) scale(&time, 1, factor());
  return real(condition, mutex, clock, &time);
}
