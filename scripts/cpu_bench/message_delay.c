// A slow network for MPI_Irecv, by LD_PRELOAD: a message that is received takes MESSAGE_DELAY_MS
// for each 16 MiB or part of them, from the call on, though it costs no core. Waits and tests hold
// it back until then.

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { kMost = 4096 };
static struct {
  MPI_Request request;
  double due;
} pending[kMost];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double delay(int count, MPI_Datatype type) {
  const char* text = getenv("MESSAGE_DELAY_MS");
  int size = 0;
  PMPI_Type_size(type, &size);
  const long long pieces = ((long long)count * size + (16 << 20) - 1) / (16 << 20);
  return text ? 1e-3 * atof(text) * (double)pieces : 0;
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int status = PMPI_Irecv(data, count, type, source, tag, comm, request);
  for (int n = 0; status == MPI_SUCCESS && n < kMost; ++n) {
    if (pending[n].due != 0) continue;
    pending[n].request = *request;
    pending[n].due = now() + delay(count, type);
    return status;
  }
  abort();
}

/// When a request may be done; forgets it.
static double take(MPI_Request request, int forget) {
  for (int n = 0; n < kMost; ++n) {
    if (pending[n].due == 0 || pending[n].request != request) continue;
    const double due = pending[n].due;
    if (forget) pending[n].due = 0;
    return due;
  }
  return 0;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const double due = take(*request, 1);
  const int result = PMPI_Wait(request, status);
  for (double left; (left = due - now()) > 0;) {
    const struct timespec t = {0, (long)(1e9 * (left < 0.5 ? left : 0.5))};
    nanosleep(&t, NULL);
  }
  return result;
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  const MPI_Request before = *request;
  if (take(before, 0) > now()) {
    *done = 0;
    return MPI_SUCCESS;
  }
  const int result = PMPI_Test(request, done, status);
  if (*done) take(before, 1);
  return result;
}
