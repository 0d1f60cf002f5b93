// Preloaded: once the all-reduce of a bucket has begun, MPI_Test does not return, as when a stranger's byte holds up
// MPI's progress.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

static int begun;

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  static int (*real)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
  if (!real) real = dlsym(RTLD_NEXT, "PMPI_Iallreduce");
  if (count > 1000) begun = 1;
  return real(in, out, count, type, op, comm, request);
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  static int (*real)(MPI_Request*, int*, MPI_Status*);
  if (!real) real = dlsym(RTLD_NEXT, "PMPI_Test");
  while (begun) pause();
  return real(request, done, status);
}
