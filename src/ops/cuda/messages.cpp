#include "ops/cuda/messages.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "ops/cuda/library.h"
#include "ops/cuda/runtime.h"

namespace bamtrain::cuda {

namespace {

/// NCCL, loaded when the first processes connect: the program starts without it.
struct Library {
  const LoadedLibrary nccl{BAMTRAIN_SONAME("libnccl", NCCL_MAJOR), "NCCL", ExitCode::distributed,
                           "install NCCL, over which GPUs exchange gradients, and name its "
                           "folder in LD_LIBRARY_PATH, or start one process"};
  decltype(&ncclGetUniqueId) unique_id = nccl["ncclGetUniqueId"];
  decltype(&ncclCommInitRankConfig) init = nccl["ncclCommInitRankConfig"];
  decltype(&ncclCommGetAsyncError) state = nccl["ncclCommGetAsyncError"];
  decltype(&ncclCommDestroy) destroy = nccl["ncclCommDestroy"];
  decltype(&ncclCommAbort) abort = nccl["ncclCommAbort"];
  decltype(&ncclGetErrorString) error_string = nccl["ncclGetErrorString"];
  decltype(&ncclGetLastError) last_error = nccl["ncclGetLastError"];
  decltype(&ncclGroupStart) group_start = nccl["ncclGroupStart"];
  decltype(&ncclGroupEnd) group_end = nccl["ncclGroupEnd"];
  decltype(&ncclSend) send = nccl["ncclSend"];
  decltype(&ncclRecv) receive = nccl["ncclRecv"];
  decltype(&ncclAllReduce) all_reduce = nccl["ncclAllReduce"];
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  const char* detail = library().last_error(nullptr);
  throw Error::fault(ExitCode::distributed, "NCCL",
                     std::string(library().error_string(result)) +
                         (detail != nullptr && *detail != 0 ? std::string(": ") + detail : "") +
                         ", for " + what,
                     "NCCL_DEBUG=INFO prints more; the run resumes from its last checkpoint");
}

// The watchdog's thread gives the communicator up, while this one may ask for its state.
std::mutex g_state_is_read;
bool g_given_up = false;

void give_up(ncclComm_t comm) {
  const std::lock_guard lock(g_state_is_read);
  g_given_up = true;
  (void)library().abort(comm);
}

/// The same of a call on a communicator that does not block: waits until the call is done.
void check(ncclComm_t comm, ncclResult_t result, const char* what) {
  while (result == ncclInProgress) {
    std::this_thread::yield();
    std::unique_lock lock(g_state_is_read);
    if (g_given_up) {
      lock.unlock();
      for (;;) ::pause();  // the watchdog ends the process
    }
    check(library().state(comm, &result), what);
  }
  check(result, what);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw Error::fault(
      ExitCode::device, "CUDA", std::string(cudaGetErrorString(error)) + ", for " + what,
      "errors of kernels are reported by later calls: run with CUDA_LAUNCH_BLOCKING=1");
}

/// Messages that NCCL queues as a group. An error between its calls must not leave the group open:
/// no other call, not even destroying the communicator, may come before its end.
class Group {
 public:
  explicit Group(ncclComm_t comm) : comm_(comm) {
    check(library().group_start(), "a group of messages");
  }
  ~Group() {
    if (open_) (void)library().group_end();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    open_ = false;
    check(comm_, library().group_end(), "a group of messages");
  }

  void send(const void* out, int64_t bytes, int peer, Stream stream) {
    queued(library().send(out, static_cast<size_t>(bytes), ncclUint8, peer, comm_, stream),
           "a message to be sent");
  }
  void receive(void* in, int64_t bytes, int peer, Stream stream) {
    queued(library().receive(in, static_cast<size_t>(bytes), ncclUint8, peer, comm_, stream),
           "a message to be received");
  }

 private:
  /// Within a group, a call is in progress until the group's end.
  static void queued(ncclResult_t result, const char* what) {
    if (result != ncclInProgress) check(result, what);
  }

  ncclComm_t comm_;
  bool open_ = true;
};

/// Throws Error if two processes have the same GPU: NCCL's own message would say less.
void check_own_devices(const Peers& peers) {
  int device = 0;
  cudaDeviceProp own = {};
  check(cudaGetDevice(&device), "the device");
  check(cudaGetDeviceProperties(&own, device), "the properties of the device");
  std::vector<cudaUUID_t> all(static_cast<size_t>(peers.size));
  int first = -1, second = -1;
  for (int rank = 0; rank < peers.size; ++rank) {
    cudaUUID_t& theirs = all[static_cast<size_t>(rank)];
    theirs = own.uuid;
    peers.broadcast(&theirs, sizeof theirs, rank);
    for (int other = 0; other < rank && first < 0; ++other) {
      if (std::memcmp(&all[static_cast<size_t>(other)], &theirs, sizeof theirs) != 0) continue;
      first = other;
      second = rank;
    }
  }
  peers.run_on_all_ranks([&] {
    if (first < 0) return;
    throw Error(
        ExitCode::distributed, "CUDA", "a GPU of its own for each process",
        "one GPU for ranks " + std::to_string(first) + " and " + std::to_string(second),
        "start at most as many processes on a node as it has GPUs, and check CUDA_VISIBLE_DEVICES");
  });
}

}  // namespace

struct Messages::State {
  Stream work;             // the backend's
  WorkStream comm_stream;  // of messages, and of what is done with them
  ncclComm_t comm = nullptr;
  std::function<void(std::function<void()>)> before_end;  // Peers::before_end
  cudaEvent_t ready = nullptr, done = nullptr;
  std::array<cudaEvent_t, PeerLink::kMarks> marks = {};

  State(const Peers& peers, Stream stream) : work(stream) {
    ncclUniqueId id = {};
    peers.run_on_all_ranks([&] {
      library();
      if (peers.rank == 0) check(library().unique_id(&id), "an identity of the run");
      const auto create = [](cudaEvent_t& e) {
        check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "an event");
      };
      create(ready);
      create(done);
      for (cudaEvent_t& e : marks) create(e);
    });
    check_own_devices(peers);
    peers.broadcast(&id, sizeof id, 0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t begun = library().init(&comm, peers.size, id, peers.rank, &config);
    before_end = peers.before_end;
    before_end([this] { give_up(comm); });
    try {
      check(comm, begun, "a connection between the GPUs");
      first_messages(peers);
    } catch (...) {
      before_end({});
      (void)library().abort(comm);
      throw;
    }
  }

  /// A message to every partner, and a sum over all processes. They make NCCL allocate its buffers
  /// now, not in the first step.
  void first_messages(const Peers& peers) {
    constexpr int64_t kBytes = 256;
    struct Buffer {
      char* memory = static_cast<char*>(allocate(2 * kBytes));
      ~Buffer() { release(memory); }
    } const buffer;
    for (const int peer : peers.partners) {
      Group group(comm);
      group.send(buffer.memory, kBytes, peer, comm_stream.get());
      group.receive(buffer.memory + kBytes, kBytes, peer, comm_stream.get());
      group.end();
    }
    auto* const sums = reinterpret_cast<float*>(buffer.memory);
    check(comm,
          library().all_reduce(sums, sums, kBytes / sizeof(float), ncclFloat32, ncclSum, comm,
                               comm_stream.get()),
          "a first sum over all GPUs");
    check(cudaStreamSynchronize(comm_stream.get()), "the first messages");
  }

  ~State() {
    if (before_end) before_end({});
    // During an error, peers may never answer, and destroy() would wait for them.
    if (comm != nullptr) {
      (void)(std::uncaught_exceptions() > 0 ? library().abort(comm) : library().destroy(comm));
    }
    const auto destroy = [](cudaEvent_t e) {
      if (e != nullptr) (void)cudaEventDestroy(e);
    };
    destroy(ready);
    destroy(done);
    for (cudaEvent_t e : marks) destroy(e);
  }
};

Messages::Messages(const Peers& peers, device::Stream stream)
    : state_(std::make_unique<State>(peers, stream)) {}
Messages::~Messages() = default;

void Messages::start(int, std::span<const PeerMessage> messages) {
  State& s = *state_;
  const Stream comm_stream = s.comm_stream.get();
  check(cudaEventRecord(s.ready, s.work), "an event");
  check(cudaStreamWaitEvent(comm_stream, s.ready, 0), "a wait for an event");
  Group group(s.comm);
  for (const auto& [peer, out, in] : messages) {
    if (out.size() > 0) group.send(out.data, out.bytes(), peer, comm_stream);
    if (in.size() > 0) group.receive(in.data, in.bytes(), peer, comm_stream);
  }
  group.end();
}

/// The stream of messages runs in order.
void Messages::finish(int) {}

Stream Messages::stream() const { return state_->comm_stream.get(); }

void Messages::join() {
  check(cudaEventRecord(state_->done, state_->comm_stream.get()), "an event");
  check(cudaStreamWaitEvent(state_->work, state_->done, 0), "a wait for an event");
}

void Messages::mark(int n) {
  check(cudaEventRecord(state_->marks.at(static_cast<size_t>(n)), state_->comm_stream.get()),
        "an event");
}

void Messages::join(int n) {
  check(cudaStreamWaitEvent(state_->work, state_->marks.at(static_cast<size_t>(n)), 0),
        "a wait for an event");
}

void Messages::all_reduce(float* data, int64_t n) {
  check(state_->comm,
        library().all_reduce(data, data, static_cast<size_t>(n), ncclFloat32, ncclSum, state_->comm,
                             state_->work),
        "a sum over all GPUs");
}

}  // namespace bamtrain::cuda
