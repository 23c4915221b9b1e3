// Checks that several processes run together; the test cases of mpi.cpp start it under mpirun.
// Usage: mpi_checks MODE PROCESSES. Exit code 0: every check passed on every
// rank.

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/group_reduction.h"
#include "dist/collective.h"
#include "dist/communicator.h"

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

/// Adds the streams of all groups in the tree by its definition: neighbours, level by level; an odd
/// last one passes up.
std::vector<float> tree_reference(int64_t groups, int64_t n) {
  std::vector<std::vector<float>> level;
  for (int64_t l = 0; l < groups; ++l) level.push_back(values<float>(l, n));
  while (level.size() > 1) {
    std::vector<std::vector<float>> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      for (size_t k = 0; i + 1 < level.size() && k < next.back().size(); ++k) {
        next.back()[k] += level[i + 1][k];
      }
    }
    level = std::move(next);
  }
  return level[0];
}

Tensor tensor_of(std::vector<float>& x) {
  return Tensor(x.data(), Dtype::f32, {static_cast<int64_t>(x.size())});
}

/// This process's sums of its groups, as a training step leaves them.
std::vector<std::vector<float>> sums_of_groups(const GroupReduction& reduction, int64_t groups,
                                               int64_t n) {
  GroupStack stack(groups);
  std::vector<std::vector<float>> buffers;
  for (int64_t l = reduction.groups().begin; l < reduction.groups().end; ++l) {
    buffers.push_back(values<float>(l, n));
    for (int k = stack.push({l, l + 1}); k > 0; --k) {
      std::vector<float>& into = buffers[buffers.size() - 2];
      for (size_t i = 0; i < into.size(); ++i) into[i] += buffers.back()[i];
      buffers.pop_back();
    }
  }
  return buffers;
}

/// Reduces the sums of all processes into the first of `sums`, with messages of at most `piece`
/// elements each where they are sums of one process.
void reduce(Communicator& communicator, GroupReduction& reduction,
            std::vector<std::vector<float>>& sums, int64_t piece) {
  std::vector<float> room(static_cast<size_t>(PeerLink::kSlots * piece * reduction.all_sums()));
  std::vector<Tensor> tensors;
  for (std::vector<float>& sum : sums) tensors.push_back(tensor_of(sum));
  reduction.run(*communicator.link(), tensors, tensor_of(room));
}

void groups(Communicator& communicator, Checks& checks) {
  const int size = communicator.size();
  for (const int64_t total : {size, 8, 13, 24}) {
    if (total < size) continue;
    GroupReduction reduction(communicator.rank(), size, total);
    for (const int64_t n : {0, 1, 3, 1000, 100003}) {
      const std::vector<float> expected = tree_reference(total, n);
      for (const int64_t piece : {64, 4096, 1 << 17}) {
        if (n / piece > 500) continue;
        std::vector<std::vector<float>> sums = sums_of_groups(reduction, total, n);
        reduce(communicator, reduction, sums, piece);
        checks.check(same_bits(sums[0], expected),
                     "gradients of " + std::to_string(n) + " elements in " + std::to_string(total) +
                         " groups, messages of " + std::to_string(piece));
      }
      if (n == 100003) {
        // Ranges that share messages, the last of an odd length.
        const std::vector<FlatRange> ranges = {
            {0, 64}, {128, 50048}, {50048, 50112}, {64000, 64640}, {70016, n}};
        std::vector<std::vector<float>> sums = sums_of_groups(reduction, total, n);
        std::vector<float> room(
            static_cast<size_t>(PeerLink::kSlots * 4096 * reduction.all_sums()));
        std::vector<Tensor> tensors;
        for (std::vector<float>& sum : sums) tensors.push_back(tensor_of(sum));
        reduction.reduce(*communicator.link(), ranges, tensors, tensor_of(room));
        bool same = true;
        for (const FlatRange& range : ranges) {
          const FlatRange own = reduction.own_range(range.size()).shifted(range.begin);
          same &= std::memcmp(sums[0].data() + own.begin, expected.data() + own.begin,
                              static_cast<size_t>(own.size()) * sizeof(float)) == 0;
        }
        checks.check(same, "ranges of gradients in " + std::to_string(total) + " groups");
      }
      if (total < 8 || n != 1000) continue;
      std::vector<float> sequential = values<float>(0, n);
      for (int64_t l = 1; l < total; ++l) {
        const std::vector<float> next = values<float>(l, n);
        for (size_t i = 0; i < next.size(); ++i) sequential[i] += next[i];
      }
      checks.check(!same_bits(expected, sequential), "group by group, other bits");
    }
  }
  // What each process owns reaches all: several tensors of other types, and one number for each
  // block of 64 elements.
  GroupReduction of_blocks(communicator.rank(), size, 24, 64);
  for (const int64_t n : {int64_t{1}, int64_t{64}, int64_t{5000}, int64_t{64} * size}) {
    const auto owned_alone = [&](auto all, int64_t per) {
      const FlatRange own = of_blocks.own_range(n);
      for (int64_t i = 0; i < std::ssize(all); ++i) {
        if (i * per < own.begin || i * per >= own.end) all[static_cast<size_t>(i)] = 0;
      }
      return all;
    };
    const int64_t blocks = (n + 63) / 64;
    const std::vector<float> floats = values<float>(3, n);
    const std::vector<double> numbers = values<double>(4, blocks);
    std::vector<float> found = owned_alone(floats, 1), other = found;
    std::vector<double> found_numbers = owned_alone(numbers, 64);
    const Tensor tensors[] = {tensor_of(found), tensor_of(other)};
    of_blocks.gather(*communicator.link(), tensors);
    const Tensor of_numbers(found_numbers.data(), Dtype::f64, {blocks});
    of_blocks.gather(*communicator.link(), {&of_numbers, 1}, 64);
    checks.check(same_bits(found, floats) && same_bits(other, floats),
                 "all of " + std::to_string(n) + " elements that processes own");
    checks.check(same_bits(found_numbers, numbers),
                 "a number for each of " + std::to_string(blocks) + " blocks that they own");
  }
  // The last group has values that spread.
  GroupReduction reduction(communicator.rank(), size, size);
  const bool last = communicator.rank() == size - 1;
  std::vector<std::vector<float>> odd = {{last ? std::numeric_limits<float>::quiet_NaN() : 1.0f,
                                          last ? std::numeric_limits<float>::infinity() : 1.0f}};
  reduce(communicator, reduction, odd, 64);
  checks.check(std::isnan(odd[0][0]), "not-a-number on one rank is seen by all");
  checks.check(std::isinf(odd[0][1]), "infinity on one rank is seen by all");
  // A number of each process.
  std::vector<double> own(static_cast<size_t>(size), 0.0), all = values<double>(7, size);
  own[static_cast<size_t>(communicator.rank())] = all[static_cast<size_t>(communicator.rank())];
  communicator.sum(own.data(), size);
  checks.check(same_bits(own, all), "numbers of one process each");
}

void messages(Communicator& communicator, Checks& checks) {
  const int rank = communicator.rank(), size = communicator.size();
  checks.check(!communicator.any(false), "any of nothing is false");
  for (int r = 0; r < size; ++r) {
    checks.check(communicator.any(rank == r),
                 "rank " + std::to_string(r) + " alone makes any true");
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

constexpr double kTimeout = 0.5, kLong = 100;  // s

/// Ends when it is ended.
[[noreturn]] void do_nothing() {
  for (;;) ::pause();
}

/// Rank `of` does something else while the others wait for it in a step.
template <class F>
void while_others_wait(Communicator& communicator, int of, F&& f, double timeout = kTimeout) {
  communicator.set_peer_timeout(timeout);
  const InPhase training(communicator.watchdog(), phases::kTraining, 41);
  if (communicator.rank() == of) f();
  communicator.barrier();
  std::printf("passed the barrier\n");
}

/// Waits that pass, though they are longer than the timeout.
void long_waits(Communicator& communicator, Checks& checks) {
  communicator.set_peer_timeout(kTimeout);
  const auto work = [] {
    std::this_thread::sleep_for(std::chrono::duration<double>(3 * kTimeout));
  };
  for (const Phase* phase : {&phases::kEvaluating, &phases::kSaving, &phases::kFirstStep}) {
    const InPhase in(communicator.watchdog(), *phase, 3);
    run_on_rank_zero(communicator, work);
  }
  {
    const InPhase in(communicator.watchdog(), phases::kTraining, 3);
    const Wait several_steps(communicator.watchdog(), "steps", Wait::kNobody, 10);
    work();
  }
  communicator.set_peer_timeout(0);
  const InPhase in(communicator.watchdog(), phases::kTraining, 3);
  run_on_rank_zero(communicator, work);
  communicator.set_peer_timeout(kTimeout);
  checks.check(true, "waits within their limits");
  // The others leave, and wait for this rank at their end alone.
  if (communicator.rank() == 0) work();
}

/// No process reaches rank 0 over TCP.
void unwatched(Communicator& communicator, Checks& checks) {
  communicator.set_peer_timeout(0);
  std::string refusal;
  try {
    communicator.set_peer_timeout(kTimeout);
  } catch (const Error& e) {
    refusal = e.what();
  }
  const std::string why =
      communicator.rank() == 0 ? "rank 0 cannot listen: Permission denied" : "rank 0 cannot listen";
  checks.check(refusal.find("connections between processes: expected TCP from every process to "
                            "rank 0, found " +
                            why + "; ") != std::string::npos,
               "a timeout is refused, and not: " + refusal);
  const InPhase training(communicator.watchdog(), phases::kTraining, 3);
  run_on_rank_zero(communicator, [] {
    std::this_thread::sleep_for(std::chrono::duration<double>(3 * kTimeout));
  });
}

int run(const std::string& mode, Communicator& communicator) {
  Checks checks(communicator);
  if (mode == "groups") groups(communicator, checks);
  if (mode == "messages") messages(communicator, checks);
  if (mode == "first") first_rank(communicator, checks);
  if (mode == "names") names(communicator, checks);
  if (mode == "abort") fail_on_one_rank(communicator);
  if (mode == "all_alike") fail_side_by_side(communicator, 0b1111, true);
  if (mode == "all_differently") fail_side_by_side(communicator, 0b1111, false);
  if (mode == "some_alike") fail_side_by_side(communicator, 0b1101, true);
  if (mode == "rank_2_alone") fail_side_by_side(communicator, 0b0100, true);
  if (mode == "count") check_process_count(communicator.size(), 2);
  if (mode == "long_waits") long_waits(communicator, checks);
  if (mode == "unwatched") unwatched(communicator, checks);
  // Of what happens to a rank: "late_1", "stopped_0", "killed_2".
  if (const size_t end = mode.find('_'); end != std::string::npos && std::isdigit(mode.back())) {
    const std::string what = mode.substr(0, end);
    const int rank = mode.back() - '0';
    if (what == "late") while_others_wait(communicator, rank, do_nothing);
    // By then it is silent.
    if (what == "stopped")
      while_others_wait(
          communicator, rank, [] { ::raise(SIGSTOP); }, 2);
    // Both are noticed at once.
    if (what == "killed")
      while_others_wait(
          communicator, rank, [] { ::raise(SIGKILL); }, kLong);
    if (what == "failed") {
      const auto fail = [] {
        throw Error(ExitCode::nonfinite, "step 3", "a finite loss", "not-a-number", "");
      };
      while_others_wait(communicator, rank, fail, kLong);
    }
    // Of a pair, one waits for a message that is not sent.
    if (what == "silent") {
      communicator.set_peer_timeout(kTimeout);
      const InPhase training(communicator.watchdog(), phases::kTraining, 41);
      if (communicator.rank() == rank) do_nothing();
      std::vector<float> data(100);
      const PeerMessage message = {rank, {}, tensor_of(data)};
      communicator.link()->start(0, {&message, 1});
      communicator.link()->finish(0);
    }
  }
  if (mode == "mismatch") {
    std::vector<float> data(communicator.rank() == 0 ? 100 : 4000);
    const PeerMessage message = {1 - communicator.rank(), tensor_of(data), tensor_of(data)};
    communicator.link()->start(0, {&message, 1});
    communicator.link()->finish(0);
  }
  return checks.report();
}

bool may_listen = true;

int main_program(const std::string& mode, int processes) {
  std::unique_ptr<Communicator> communicator;
  try {
    may_listen = mode != "unwatched";
    communicator = make_communicator();
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

/// In place of the C library's.
extern "C" int listen(int socket, int most) noexcept {
  if (bamtrain::may_listen) return static_cast<int>(::syscall(SYS_listen, socket, most));
  errno = EACCES;
  return -1;
}

int main(int argc, char** argv) {
  return argc == 3 ? bamtrain::main_program(argv[1], std::atoi(argv[2])) : 2;
}
