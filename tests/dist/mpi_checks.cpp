// Checks that several processes run together; the test cases of mpi.cpp start it under mpirun.
// Usage: mpi_checks MODE PROCESSES [BYTES_PER_MESSAGE]. Exit code 0: every check passed on every
// rank.

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/accumulation_tree.h"
#include "core/error.h"
#include "dist/backends.h"
#include "dist/collective.h"
#include "dist/communicator.h"
#include "dist/launch.h"

namespace bamtrain {
namespace {

class Checks {
 public:
  explicit Checks(Communicator& communicator) : communicator_(communicator) {}

  void check(bool holds, const std::string& what) {
    if (!holds) failed_ = true;
    if (!holds || communicator_.rank() == 0) {
      std::printf("%s: rank %d: %s\n", holds ? "ok" : "FAILED", communicator_.rank(), what.c_str());
    }
  }

  /// The exit code of this process.
  int report() const {
    if (!failed_) std::printf("rank %d: all checks passed\n", communicator_.rank());
    std::fflush(stdout);
    return failed_ ? 1 : 0;
  }

 private:
  Communicator& communicator_;
  bool failed_ = false;
};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): cheap, since every rank generates all ranks'
/// numbers.
uint64_t mixed_bits(uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Stream `s`: numbers whose magnitudes differ by up to 2^31, so that the order of additions
/// matters.
template <class T>
std::vector<T> values(int64_t s, int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits =
        mixed_bits(mixed_bits(static_cast<uint64_t>(s)) ^ static_cast<uint64_t>(i));
    const double signed_fraction = static_cast<double>(static_cast<int64_t>(bits << 15)) * 0x1p-63;
    const double power = static_cast<double>(uint64_t{1} << (bits >> 59));
    v[static_cast<size_t>(i)] = static_cast<T>(signed_fraction * power);
  }
  return v;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Adds streams [first, first + count) in the tree by its definition, top down.
template <class T>
std::vector<T> tree_reference(int64_t first, int64_t count, int64_t n) {
  if (count == 1) return values<T>(first, n);
  std::vector<T> a = tree_reference<T>(first, count / 2, n);
  const std::vector<T> b = tree_reference<T>(first + count / 2, count / 2, n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] + b[i];
  return a;
}

template <class T>
void check_sums(Communicator& communicator, Checks& checks, const char* type) {
  const int size = communicator.size();
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{1000}, (int64_t{1} << 20) + 7}) {
    std::vector<T> sum = values<T>(communicator.rank(), n);
    communicator.all_reduce_sum(sum.data(), n);
    const std::string what = std::to_string(n) + " " + type;
    checks.check(same_bits(sum, tree_reference<T>(0, size, n)), "tree sum of " + what);
    if (size < 4 || n != 1000) continue;
    std::vector<T> sequential = values<T>(0, n);
    for (int r = 1; r < size; ++r) {
      const std::vector<T> next = values<T>(r, n);
      for (size_t i = 0; i < next.size(); ++i) sequential[i] += next[i];
    }
    checks.check(!same_bits(sum, sequential), "rank by rank, other bits: " + what);
  }
}

void sums(Communicator& communicator, Checks& checks) {
  check_sums<float>(communicator, checks, "floats");
  check_sums<double>(communicator, checks, "doubles");
  const bool last = communicator.rank() == communicator.size() - 1;
  std::vector<float> odd = {last ? std::numeric_limits<float>::quiet_NaN() : 1.0f,
                            last ? std::numeric_limits<float>::infinity() : 1.0f};
  communicator.all_reduce_sum(odd.data(), 2);
  checks.check(std::isnan(odd[0]), "not-a-number on one rank is seen by all");
  checks.check(std::isinf(odd[1]), "infinity on one rank is seen by all");
}

/// Adds groups [first, first + count) in the order of a training step.
std::vector<float> group_sum(int64_t first, int64_t count, int64_t n) {
  const AccumulationTree tree(count);
  std::vector<std::vector<float>> buffers(static_cast<size_t>(tree.buffers()));
  for (int64_t lane = 0; lane < count; ++lane) {
    buffers[static_cast<size_t>(tree.buffer_for(lane))] = values<float>(first + lane, n);
    for (const auto& [into, from] : tree.joins_after(lane)) {
      std::vector<float>& a = buffers[static_cast<size_t>(into)];
      const std::vector<float>& b = buffers[static_cast<size_t>(from)];
      for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    }
  }
  return buffers[0];
}

/// Adds one number per group, in the groups' tree.
double tree_sum(std::span<const double> values) {
  if (values.size() == 1) return values[0];
  const size_t half = values.size() / 2;
  return tree_sum(values.first(half)) + tree_sum(values.last(half));
}

void lanes(Communicator& communicator, Checks& checks) {
  constexpr int64_t n = 10007;
  for (int64_t total : {8, 32}) {
    check_process_count(communicator.size(), total);
    const int64_t own = total / communicator.size(), first = own * communicator.rank();
    const std::string what = std::to_string(total) + " lanes";

    std::vector<float> gradient = group_sum(first, own, n);
    communicator.all_reduce_sum(gradient.data(), n);
    checks.check(same_bits(gradient, group_sum(0, total, n)), "gradients of " + what);

    const std::vector<double> losses = values<double>(99, total);
    double loss =
        tree_sum(std::span(losses).subspan(static_cast<size_t>(first), static_cast<size_t>(own)));
    communicator.all_reduce_sum(&loss, 1);
    checks.check(std::bit_cast<uint64_t>(loss) == std::bit_cast<uint64_t>(tree_sum(losses)),
                 "loss of " + what);
  }
}

void messages(Communicator& communicator, Checks& checks) {
  const int rank = communicator.rank(), size = communicator.size();
  checks.check(!communicator.any(false), "any of nothing is false");
  for (int r = 0; r < size; ++r) {
    checks.check(communicator.any(rank == r),
                 "rank " + std::to_string(r) + " alone makes any true");
    // Longer than one message.
    std::vector<double> data = values<double>(rank, 300001);
    communicator.broadcast(data.data(), static_cast<int64_t>(data.size() * sizeof(double)), r);
    checks.check(same_bits(data, values<double>(r, 300001)), "bytes of one rank");
  }
  communicator.broadcast(nullptr, 0, size - 1);
  communicator.barrier();
}

/// Rank 1 fails while the others wait for it.
void fail_on_one_rank(Communicator& communicator) {
  if (communicator.rank() == 1) {
    throw Error(ExitCode::nonfinite, "step 3", "a finite loss", "not-a-number", "");
  }
  communicator.barrier();
  std::printf("passed the barrier\n");
}

/// Ranks whose bit r of `failing` is set fail at the same time, with one message (`alike`) or
/// different ones.
void fail_side_by_side(Communicator& communicator, unsigned failing, bool alike) {
  const int rank = communicator.rank();
  run_on_all_ranks(communicator, [&] {
    if ((failing >> rank & 1) == 0) return;
    throw Error(ExitCode::data, alike ? "shard" : "shard of " + std::to_string(rank), "a file",
                "none", "");
  });
  std::printf("passed by rank %d\n", rank);
}

/// Rank 0 works alone. The others wait until it has finished.
void first_rank(Communicator& communicator, Checks& checks) {
  int done = 0;
  run_on_rank_zero(communicator, [&] { ++done; });
  checks.check(done == (communicator.rank() == 0 ? 1 : 0), "work of rank 0 is done there alone");
  run_on_all_ranks(communicator, [&] { ++done; });
  checks.check(done == (communicator.rank() == 0 ? 2 : 1), "work of all is done everywhere");
}

/// Names that the processes give to the same thing.
void names(Communicator& communicator, Checks& checks) {
  const int rank = communicator.rank();
  checks.check(different_names(communicator, "a device").empty(), "one name is no difference");
  const std::string own = rank < 2 ? "a device" : rank == 2 ? "" : "another, longer name";
  checks.check(different_names(communicator, own) ==
                   "a device (rank 0),  (rank 2), another, longer name (rank 3)",
               "each name with the first rank that has it");
}

int run(const std::string& mode, Communicator& communicator) {
  Checks checks(communicator);
  if (mode == "sums") sums(communicator, checks);
  if (mode == "lanes") lanes(communicator, checks);
  if (mode == "messages") messages(communicator, checks);
  if (mode == "first") first_rank(communicator, checks);
  if (mode == "names") names(communicator, checks);
  if (mode == "abort") fail_on_one_rank(communicator);
  if (mode == "all_alike") fail_side_by_side(communicator, 0b1111, true);
  if (mode == "all_differently") fail_side_by_side(communicator, 0b1111, false);
  if (mode == "some_alike") fail_side_by_side(communicator, 0b1101, true);
  if (mode == "rank_2_alone") fail_side_by_side(communicator, 0b0100, true);
  if (mode == "count") check_process_count(communicator.size(), 8);
  if (mode == "mismatch") {
    std::vector<float> data(communicator.rank() == 0 ? 100 : 4000);
    communicator.all_reduce_sum(data.data(), static_cast<int64_t>(data.size()));
  }
  return checks.report();
}

int main_program(const std::string& mode, int processes, int64_t piece_bytes) {
  std::unique_ptr<Communicator> communicator;
  try {
    communicator =
        piece_bytes > 0 ? make_mpi_communicator(detect_launch(), piece_bytes) : make_communicator();
    if (communicator->size() != processes) throw std::runtime_error("other number of processes");
    if (mode == "unwind") {
      const std::unique_ptr<Communicator> inner = std::move(communicator);
      fail_on_one_rank(*inner);
    }
    return run(mode, *communicator);
  } catch (const Error& e) {
    const int rank = communicator ? communicator->rank() : 0;
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    if (communicator) communicator->abort(static_cast<int>(e.code()));
    return static_cast<int>(e.code());
  }
}

}  // namespace
}  // namespace bamtrain

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return 2;
  return bamtrain::main_program(argv[1], std::atoi(argv[2]), argc == 4 ? std::atoll(argv[3]) : 0);
}
