// A bad network for messages between processes, by LD_PRELOAD. What the calls return early, waits
// and tests hold back.
//
//   MESSAGE_DELAY_MS=D   a message that is received takes D ms from the call on, and no core
//   MESSAGE_SEED=N       each takes a part of that, drawn anew: so others overtake it
//   MESSAGE_DROP=R:N     rank R sends N messages: MPI keeps their order, so none follows a lost one
//   MESSAGE_COUNT=FILE   a line "RANK NUMBER" at the end of each process: messages sent

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kMost = 4096 };
static struct {
  MPI_Request request;
  double due;
} pending[kMost];
static long sent;
static int own_rank = -1;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double delay(void) {
  static unsigned state;
  const char *text = getenv("MESSAGE_DELAY_MS"), *seed = getenv("MESSAGE_SEED");
  double seconds = text ? 1e-3 * atof(text) : 0;
  if (seed) {
    if (state == 0) state = (unsigned)atoi(seed) + 1;
    seconds *= (double)rand_r(&state) / RAND_MAX;
  }
  return seconds;
}

static int is_dropped(void) {
  const char* text = getenv("MESSAGE_DROP");
  int rank = -1;
  long number = -1;
  return text && sscanf(text, "%d:%ld", &rank, &number) == 2 && rank == own_rank && sent >= number;
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (own_rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  const int dropped = is_dropped();
  ++sent;
  if (!dropped) return PMPI_Isend(data, count, type, to, tag, comm, request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int status = PMPI_Irecv(data, count, type, source, tag, comm, request);
  for (int n = 0; status == MPI_SUCCESS && n < kMost; ++n) {
    if (pending[n].due != 0) continue;
    pending[n].request = *request;
    pending[n].due = now() + delay();
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
    const int status_of = PMPI_Request_get_status(*request, done, MPI_STATUS_IGNORE);  // it travels
    *done = 0;
    return status_of;
  }
  const int result = PMPI_Test(request, done, status);
  if (*done) take(before, 1);
  return result;
}

__attribute__((destructor)) static void count(void) {
  const char* path = getenv("MESSAGE_COUNT");
  FILE* file = path && own_rank >= 0 ? fopen(path, "a") : NULL;
  if (file == NULL) return;
  fprintf(file, "%d %ld\n", own_rank, sent);
  fclose(file);
}
