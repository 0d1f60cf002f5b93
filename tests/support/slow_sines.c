// Preloaded: each sincos() of another thread than the first takes SLOW_SINE_MS
// longer: loaders call it to rotate pictures, and the first thread, which draws weights with it, does not wait.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

void sincos(double x, double* sine, double* cosine) {
  static void (*real)(double, double*, double*);
  if (!real) real = dlsym(RTLD_NEXT, "sincos");
  const char* ms = getenv("SLOW_SINE_MS");
  if (ms && gettid() != getpid()) usleep(1000 * (unsigned)atoi(ms));
  real(x, sine, cosine);
}
