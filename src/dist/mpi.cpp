// Open MPI's header would otherwise bring in its deprecated C++ bindings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <exception>

#include "core/error.h"
#include "core/parallel.h"
#include "dist/backends.h"

namespace bamtrain {
namespace {

constexpr int kTag = 1;
// Elements that one thread adds at a time.
constexpr int64_t kAddGrain = int64_t{1} << 14;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw Error(ExitCode::distributed, call, "success",
              length > 0 ? std::string(text.data(), static_cast<size_t>(length))
                         : "error " + std::to_string(status),
              "see the messages of the other processes; the run resumes from its last checkpoint");
}

template <class T>
void add(T* into, const T* from, int64_t n) {
  parallel_ranges(n, kAddGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) into[i] += from[i];
  });
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const Launch& launch, int64_t piece_bytes) : piece_bytes_(piece_bytes) {
    require(piece_bytes > 0 && piece_bytes % 8 == 0 && piece_bytes < INT32_MAX,
            "messages of whole elements, below MPI's 2^31 bytes");
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
          static_cast<size_t>(kMessagesUnderWay * piece_bytes_));
    }
  }

  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > 0) {
      std::fprintf(stderr, "bamtrain: rank %d ends by an error, and with it the run\n", rank_);
      abort(static_cast<int>(ExitCode::internal));
    }
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }

  void all_reduce_sum(float* data, int64_t n) override { all_reduce(data, n); }
  void all_reduce_sum(double* data, int64_t n) override { all_reduce(data, n); }

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
  // The elements of `data` that this rank still sums, and the half that its peer takes.
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };

  // Recursive halving: at distance 1, 2, 4 a pair of ranks shares the range that both have summed
  // over the same ranks so far; each receives and adds the other's half of it. So every element is
  // added in the tree, once, by the rank that ends up with it (a + b == b + a: which of the two
  // adds does not matter). The way back, by recursive doubling, copies.
  template <class T>
  void all_reduce(T* data, int64_t n) {
    require(std::has_single_bit(static_cast<unsigned>(size_)),
            "a number of processes that is a power of two");
    const int levels = std::countr_zero(static_cast<unsigned>(size_));
    std::array<Range, 32> mine, theirs;
    Range range{0, n};
    for (int level = 0; level < levels; ++level) {
      const int64_t middle = range.begin + range.size() / 2;
      const Range lower{range.begin, middle}, upper{middle, range.end};
      const bool take_upper = ((rank_ >> level) & 1) != 0;
      mine[level] = take_upper ? upper : lower;
      theirs[level] = take_upper ? lower : upper;
      exchange_and_add(data, theirs[level], mine[level], rank_ ^ (1 << level));
      range = mine[level];
    }
    for (int level = levels - 1; level >= 0; --level) {
      exchange(data, mine[level], theirs[level], rank_ ^ (1 << level));
    }
  }

  // Sends `give` to `peer` and adds what it sends to `keep`; the next piece travels meanwhile.
  template <class T>
  void exchange_and_add(T* data, Range give, Range keep, int peer) {
    const int64_t piece_size = piece_bytes_ / static_cast<int64_t>(sizeof(T));
    std::array<MPI_Request, kMessagesUnderWay> sends, receives;
    sends.fill(MPI_REQUEST_NULL);
    receives.fill(MPI_REQUEST_NULL);
    const auto slot_memory = [this](int64_t piece) {
      return reinterpret_cast<T*>(scratch_.get() + piece % kMessagesUnderWay * piece_bytes_);
    };
    const auto start = [&](int64_t piece) {
      const int64_t first = piece * piece_size;
      const size_t slot = static_cast<size_t>(piece % kMessagesUnderWay);
      if (const int64_t count = std::min(piece_size, keep.size() - first); count > 0) {
        check(MPI_Irecv(slot_memory(piece), bytes_of<T>(count), MPI_BYTE, peer, kTag,
                        MPI_COMM_WORLD, &receives[slot]),
              "MPI_Irecv");
      }
      if (const int64_t count = std::min(piece_size, give.size() - first); count > 0) {
        check(MPI_Isend(data + give.begin + first, bytes_of<T>(count), MPI_BYTE, peer, kTag,
                        MPI_COMM_WORLD, &sends[slot]),
              "MPI_Isend");
      }
    };
    const int64_t pieces = (std::max(give.size(), keep.size()) + piece_size - 1) / piece_size;
    if (pieces > 0) start(0);
    for (int64_t piece = 0; piece < pieces; ++piece) {
      if (piece + 1 < pieces) start(piece + 1);
      const size_t slot = static_cast<size_t>(piece % kMessagesUnderWay);
      check(MPI_Wait(&receives[slot], MPI_STATUS_IGNORE), "MPI_Wait");
      const int64_t first = piece * piece_size;
      add(data + keep.begin + first, slot_memory(piece), std::min(piece_size, keep.size() - first));
      check(MPI_Wait(&sends[slot], MPI_STATUS_IGNORE), "MPI_Wait");
    }
  }

  // Sends `give` to `peer` and replaces `take` by what it sends.
  template <class T>
  void exchange(T* data, Range give, Range take, int peer) {
    const int64_t piece_size = piece_bytes_ / static_cast<int64_t>(sizeof(T));
    const int64_t longest = std::max(give.size(), take.size());
    for (int64_t first = 0; first < longest; first += piece_size) {
      const int64_t out = std::clamp<int64_t>(give.size() - first, 0, piece_size);
      const int64_t in = std::clamp<int64_t>(take.size() - first, 0, piece_size);
      check(MPI_Sendrecv(data + give.begin + first, bytes_of<T>(out), MPI_BYTE,
                         out > 0 ? peer : MPI_PROC_NULL, kTag, data + take.begin + first,
                         bytes_of<T>(in), MPI_BYTE, in > 0 ? peer : MPI_PROC_NULL, kTag,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
    }
  }

  // REQUIRES: at most one piece.
  template <class T>
  static int bytes_of(int64_t count) {
    return static_cast<int>(count * static_cast<int64_t>(sizeof(T)));
  }

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int64_t piece_bytes_;                   // of every message, at most
  std::unique_ptr<std::byte[]> scratch_;  // kMessagesUnderWay pieces
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch, int64_t piece_bytes) {
  return std::make_unique<MpiCommunicator>(launch, piece_bytes);
}

}  // namespace bamtrain
