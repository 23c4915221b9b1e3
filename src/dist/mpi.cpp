// Otherwise Open MPI's header includes its deprecated C++ bindings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "dist/backends.h"
#include "dist/watchdog.h"

namespace bamtrain {
namespace {

constexpr int kTag = 1;
// Between looks at messages beside a computation.
constexpr std::chrono::microseconds kAside(20);
// Elements per task of a parallel addition.
constexpr int64_t kAddGrain = int64_t{1} << 14;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw Error::fault(
      ExitCode::distributed, call,
      "failed: " + (length > 0 ? std::string(text.data(), static_cast<size_t>(length))
                               : "error " + std::to_string(status)),
      "see the messages of the other processes; the run resumes from its last checkpoint");
}

template <class T>
void add_elements(T* into, const T* from, int64_t n) {
  parallel_ranges(n, kAddGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) into[i] += from[i];
  });
}

/// f(from, count) for parts of n elements: MPI counts in an int.
template <class F>
void for_counts(int64_t n, F&& f) {
  constexpr int64_t kLongest = int64_t{1} << 30;
  for (int64_t done = 0; done < n; done += kLongest) {
    f(done, static_cast<int>(std::min(kLongest, n - done)));
  }
}

/// Messages between the processes of MPI_COMM_WORLD, in host memory.
class MpiLink final : public PeerLink {
 public:
  explicit MpiLink(Watchdog& watchdog) : watchdog_(watchdog) {}

  void start(int slot, std::span<const PeerMessage> messages) override {
    std::vector<Request>& requests = requests_.at(static_cast<size_t>(slot));
    require(requests.empty(), "an idle slot");
    const Wait wait(&watchdog_, "MPI_Isend");  // which a full transport may make wait
    for (const auto& [peer, out, in] : messages) {
      if (in.size() > 0) {
        check(MPI_Irecv(in.data, static_cast<int>(in.bytes()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                        &requests.emplace_back(Request{peer}).of),
              "MPI_Irecv");
      }
      if (out.size() > 0) {
        check(MPI_Isend(out.data, static_cast<int>(out.bytes()), MPI_BYTE, peer, kTag,
                        MPI_COMM_WORLD, &requests.emplace_back(Request{peer}).of),
              "MPI_Isend");
      }
    }
  }

  void finish(int slot) override {
    std::vector<Request>& requests = requests_.at(static_cast<size_t>(slot));
    const Wait wait(&watchdog_, "MPI_Wait", peer_of(requests));
    const bool aside = std::this_thread::get_id() != main_;
    for (Request& r : requests) {
      if (aside) {
        wait_aside(&r.of);
      } else {
        check(MPI_Wait(&r.of, MPI_STATUS_IGNORE), "MPI_Wait");
      }
    }
    requests.clear();
  }

  void join() override {}
  void mark(int) override {}
  void join(int) override {}
  void give_up() override { gives_up_ = true; }

  void add(const Tensor& into, const Tensor& from) override {
    if (into.dtype == Dtype::f64) {
      add_elements(into.ptr<double>(), from.ptr<double>(), into.size());
    } else {
      add_elements(into.ptr<float>(), from.ptr<float>(), into.size());
    }
  }

  void all_reduce(const Tensor& data) override {
    const Wait wait(&watchdog_, "MPI_Allreduce");
    for_counts(data.size(), [&data](int64_t from, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, data.ptr<float>() + from, count, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD),
            "MPI_Allreduce");
    });
  }

 private:
  struct Request {
    int peer;
    MPI_Request of = MPI_REQUEST_NULL;
  };
  /// The one whom all of them are exchanged with, if there is one.
  static int peer_of(const std::vector<Request>& requests) {
    const auto other = [&](const Request& r) { return r.peer != requests[0].peer; };
    const bool one = !requests.empty() && std::none_of(requests.begin(), requests.end(), other);
    return one ? requests[0].peer : Wait::kNobody;
  }

  /// Waits on a thread beside the one that computes, and leaves it the core. What gives up leaves
  /// messages behind, since the process ends: a computation fails by a bug or where shards cannot
  /// be read.
  void wait_aside(MPI_Request* request) {
    for (int done = 0;;) {
      check(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
      require(!gives_up_, "messages that are waited for");
      std::this_thread::sleep_for(kAside);
    }
  }

  Watchdog& watchdog_;
  const std::thread::id main_ = std::this_thread::get_id();
  std::atomic<bool> gives_up_ = false;
  std::array<std::vector<Request>, kSlots> requests_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const Launch& launch, double peer_timeout) {
    watchdog_.set_timeout(peer_timeout);
    const InPhase connecting(&watchdog_, phases::kConnecting, 0);
    const Wait wait(&watchdog_, "MPI_Init and the first exchanges");
    int initialized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    require(initialized == 0, "one MPI communicator per process");
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (level < MPI_THREAD_SERIALIZED) {
      throw Error(ExitCode::distributed, "MPI_Init_thread", "MPI_THREAD_SERIALIZED or more",
                  "thread level " + std::to_string(level), "use an MPI built with thread support");
    }
    require_connected(launch, size_);
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local_rank_), "MPI_Comm_rank");
    check(MPI_Allreduce(&rank_, &first_rank_of_node_, 1, MPI_INT, MPI_MIN, machine),
          "MPI_Allreduce");
    check(MPI_Comm_free(&machine), "MPI_Comm_free");
    if (size_ == 1) return;
    unwatched_ = watchdog_.connect(
        rank_, size_, [this](void* data, int64_t bytes) { broadcast(data, bytes, 0); });
    // Rank 0 knows who has called from here on.
    barrier();
  }

  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > 0) {
      std::fprintf(stderr, "bamtrain: rank %d failed and stops the run\n", rank_);
      abort(static_cast<int>(ExitCode::internal));
    }
    const Wait wait(&watchdog_, "MPI_Finalize");
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int first_rank_of_node() const override { return first_rank_of_node_; }

  void sum(double* data, int64_t n) override {
    const Wait wait(&watchdog_, "MPI_Allreduce");
    for_counts(n, [data](int64_t from, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, data + from, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
            "MPI_Allreduce");
    });
  }
  PeerLink* link() override { return &link_; }

  bool any(bool value) override {
    const Wait wait(&watchdog_, "MPI_Allreduce");
    int mine = value ? 1 : 0, result = 0;
    check(MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD), "MPI_Allreduce");
    return result != 0;
  }

  void broadcast(void* data, int64_t bytes, int root) override {
    require(root >= 0 && root < size_, "a rank as the root");
    const Wait wait(&watchdog_, "MPI_Bcast");
    for_counts(bytes, [data, root](int64_t from, int count) {
      check(MPI_Bcast(static_cast<char*>(data) + from, count, MPI_BYTE, root, MPI_COMM_WORLD),
            "MPI_Bcast");
    });
  }

  void barrier() override {
    const Wait wait(&watchdog_, "MPI_Barrier");
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  }

  Watchdog* watchdog() override { return size_ > 1 ? &watchdog_ : nullptr; }
  void set_peer_timeout(double seconds) override {
    if (size_ > 1 && seconds > 0 && !unwatched_.empty()) {
      throw Error(
          ExitCode::distributed, "connections between processes",
          "TCP from every process to rank 0", unwatched_,
          "allow it between the nodes, or set train.peer_timeout to 0: then a process that is "
          "lost is not noticed");
    }
    watchdog_.set_timeout(seconds);
  }

  void abort(int exit_code) override {
    watchdog_.fail(exit_code);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }

 private:
  Watchdog watchdog_;      // first: it says goodbye after all else
  std::string unwatched_;  // why there is no connection to rank 0
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int first_rank_of_node_ = 0;
  MpiLink link_{watchdog_};
};

}  // namespace

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string name = text.data();  // packager and build date may follow a comma or a newline
  name.resize(std::min(name.size(), name.find_first_of(",\n")));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch, double peer_timeout) {
  return std::make_unique<MpiCommunicator>(launch, peer_timeout);
}

}  // namespace bamtrain
