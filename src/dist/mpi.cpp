// Otherwise Open MPI's header includes its deprecated C++ bindings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>

#include "core/error.h"
#include "core/parallel.h"
#include "core/reduction_tree.h"
#include "dist/backends.h"

namespace bamtrain {
namespace {

constexpr int kTag = 1;
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

/// Messages between the processes of MPI_COMM_WORLD, in host memory.
class MpiLink final : public PeerLink {
 public:
  MpiLink() { requests_.fill({MPI_REQUEST_NULL, MPI_REQUEST_NULL}); }

  void start(int slot, int peer, const Tensor& out, const Tensor& in) override {
    auto& [receive, send] = requests_.at(static_cast<size_t>(slot));
    if (in.size() > 0) {
      check(MPI_Irecv(in.data, static_cast<int>(in.bytes()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                      &receive),
            "MPI_Irecv");
    }
    if (out.size() > 0) {
      check(MPI_Isend(out.data, static_cast<int>(out.bytes()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                      &send),
            "MPI_Isend");
    }
  }

  void finish(int slot) override {
    for (MPI_Request& r : requests_.at(static_cast<size_t>(slot))) {
      check(MPI_Wait(&r, MPI_STATUS_IGNORE), "MPI_Wait");
    }
  }

  void add(const Tensor& into, const Tensor& from) override {
    if (into.dtype == Dtype::f64) {
      add_elements(into.ptr<double>(), from.ptr<double>(), into.size());
    } else {
      add_elements(into.ptr<float>(), from.ptr<float>(), into.size());
    }
  }

  void all_reduce(const Tensor& data) override {
    // MPI counts are int.
    constexpr int64_t kLongest = int64_t{1} << 30;
    for (int64_t done = 0; done < data.size(); done += kLongest) {
      const int count = static_cast<int>(std::min(kLongest, data.size() - done));
      check(MPI_Allreduce(MPI_IN_PLACE, data.ptr<float>() + done, count, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD),
            "MPI_Allreduce");
    }
  }

 private:
  std::array<std::array<MPI_Request, 2>, kSlots> requests_;  // receive, send
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const Launch& launch, int64_t piece_bytes) : piece_bytes_(piece_bytes) {
    require(piece_bytes > 0 && piece_bytes % 512 == 0 && piece_bytes < INT32_MAX,
            "messages of multiples of 64 elements, below MPI's 2^31 bytes");
    int initialized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    require(initialized == 0, "one MPI communicator per process");
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (level < MPI_THREAD_FUNNELED) {
      throw Error(ExitCode::distributed, "MPI_Init_thread", "MPI_THREAD_FUNNELED or more",
                  "thread level " + std::to_string(level), "use an MPI built with thread support");
    }
    require_connected(launch, size_);
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local_rank_), "MPI_Comm_rank");
    check(MPI_Comm_free(&machine), "MPI_Comm_free");
    if (size_ > 1) {
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(
          static_cast<size_t>(PeerLink::kSlots * piece_bytes_));
    }
  }

  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > 0) {
      std::fprintf(stderr, "bamtrain: rank %d failed and stops the run\n", rank_);
      abort(static_cast<int>(ExitCode::internal));
    }
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }

  void all_reduce_sum(float* data, int64_t n) override { all_reduce(data, n); }
  void all_reduce_sum(double* data, int64_t n) override { all_reduce(data, n); }
  PeerLink* link() override { return &link_; }

  bool any(bool value) override {
    int mine = value ? 1 : 0, result = 0;
    check(MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD), "MPI_Allreduce");
    return result != 0;
  }

  void broadcast(void* data, int64_t bytes, int root) override {
    require(root >= 0 && root < size_, "a rank as the root");
    char* at = static_cast<char*>(data);
    for (int64_t done = 0; done < bytes; done += piece_bytes_) {
      const int length = static_cast<int>(std::min(piece_bytes_, bytes - done));
      check(MPI_Bcast(at + done, length, MPI_BYTE, root, MPI_COMM_WORLD), "MPI_Bcast");
    }
  }

  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  void abort(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  template <class T>
  void all_reduce(T* data, int64_t n) {
    const int64_t scratch = PeerLink::kSlots * piece_bytes_ / static_cast<int64_t>(sizeof(T));
    tree_all_reduce(link_, rank_, size_, Tensor(data, DtypeOf<T>::value, {n}),
                    Tensor(scratch_.get(), DtypeOf<T>::value, {scratch}));
  }

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  MpiLink link_;
  int64_t piece_bytes_;                   // maximum size of a message
  std::unique_ptr<std::byte[]> scratch_;  // PeerLink::kSlots messages
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

std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch, int64_t piece_bytes) {
  return std::make_unique<MpiCommunicator>(launch, piece_bytes);
}

}  // namespace bamtrain
