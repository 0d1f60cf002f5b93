// Preloaded: a call of MPI does not return, as when a stranger's byte holds up MPI's progress. It is MPI_Test once the
// all-reduce of a bucket has begun; or, with HANG_CALL=MPI_Ibarrier (or MPI_Test) and HANG_FROM=3, the third and later ones.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int begun;

static void may_hang(const char* call) {
  static int calls;
  const char* hanging = getenv("HANG_CALL");
  if (hanging && strcmp(hanging, call) == 0 && ++calls >= atoi(getenv("HANG_FROM")))
    while (1) pause();
}

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  static int (*real)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
  if (!real) real = dlsym(RTLD_NEXT, "PMPI_Iallreduce");
  if (count > 1000 && !getenv("HANG_CALL")) begun = 1;
  return real(in, out, count, type, op, comm, request);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  static int (*real)(MPI_Comm, MPI_Request*);
  if (!real) real = dlsym(RTLD_NEXT, "PMPI_Ibarrier");
  may_hang("MPI_Ibarrier");
  return real(comm, request);
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  static int (*real)(MPI_Request*, int*, MPI_Status*);
  if (!real) real = dlsym(RTLD_NEXT, "PMPI_Test");
  while (begun) pause();
  may_hang("MPI_Test");
  return real(request, done, status);
}
