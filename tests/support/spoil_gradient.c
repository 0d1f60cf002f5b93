// Preloaded by tests: a number of rank $SPOIL_RANK is not finite, at its gradient number $SPOIL_FROM (from 1) and the
// $SPOIL_TIMES - 1 after it. A gradient is an all-reduce of at least 1,000,000 floats.
//   SPOIL_WHAT=gradient  one value of it, before it is summed
//   SPOIL_WHAT=weight    one of the weights, which this rank then computes with
//   SPOIL_AS             nan or inf
// The program opens Open MPI by itself, so the real functions are looked up when they are first called. The weights are
// what is first broadcast in a piece of 1,000,000 floats or more.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Allreduce)(const void*, void*, int, void*, void*, void*, void**);
typedef int (*Broadcast)(void*, int, void*, int, void*, void**);
enum { kLarge = 1000000 };

static float* weights;
static int weight_count;

static void* mpi(const char* name) { return dlsym(dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD), name); }

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atol(text) : otherwise;
}

static int is(const char* name, const char* wanted) {
  const char* text = getenv(name);
  return text != NULL && strcmp(text, wanted) == 0;
}

static int is_now(void) {
  static long seen;
  const long from = number("SPOIL_FROM", 1);
  ++seen;
  return seen >= from && seen < from + number("SPOIL_TIMES", 1);
}

int MPI_Ibcast(void* data, int count, void* type, int root, void* world, void** request) {
  static Broadcast real;
  if (real == NULL) real = (Broadcast)mpi("PMPI_Ibcast");
  if (weights == NULL && count >= 4 * kLarge) {
    weights = data;
    weight_count = count / 4;
  }
  return real(data, count, type, root, world, request);
}

int MPI_Iallreduce(const void* from, void* to, int count, void* type, void* operation, void* world, void** request) {
  static Allreduce real;
  if (real == NULL) real = (Allreduce)mpi("PMPI_Iallreduce");
  const int is_gradient = count >= kLarge && type == mpi("ompi_mpi_float");
  if (is_gradient && number("OMPI_COMM_WORLD_RANK", -1) == number("SPOIL_RANK", -2) && is_now()) {
    const float value = is("SPOIL_AS", "inf") ? INFINITY : NAN;
    if (is("SPOIL_WHAT", "weight"))
      weights[weight_count / 2] = value;
    else
      ((float*)to)[count / 2] = value;
  }
  return real(from, to, count, type, operation, world, request);
}
