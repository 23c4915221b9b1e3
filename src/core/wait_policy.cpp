#include "core/wait_policy.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/parallel.h"

namespace bamtrain {

namespace {

/// How long a thread spins before it sleeps: about the gap between two parallel regions; waking a
/// thread takes several times that. GCC's runtime defaults to 300,000 rounds, longer than a
/// parallel region of a small model. On an idle machine both are equally fast. Next to busy
/// programs, any number up to 1,000 (20 microseconds there) is the fastest
/// (bench/results/cpu-threads.md).
constexpr double kSpinSeconds = 20e-6;

/// The time of one spin round of the runtime, a pause instruction: 10 to 50 ns by processor.
double seconds_of_round() {
#if defined(__x86_64__)
  constexpr int kRounds = 256, kTimes = 4;
  double shortest = 1;
  for (int n = 0; n < kTimes; ++n) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) __builtin_ia32_pause();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, taken.count() / kRounds);
  }
  return shortest;
#else
  return kSpinSeconds / 1000;
#endif
}

/// The number of rounds, a power of two so that it is the same in every start.
std::string spins() {
  constexpr int kFewest = 128, kMost = 8192;
  const double seconds = seconds_of_round();
  int rounds = kFewest;
  while (rounds < kMost && 1.4 * rounds * seconds < kSpinSeconds) rounds *= 2;
  return std::to_string(rounds);
}

constexpr const char* kVariables[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"};

/// Restarts the program in this process. Returns only on failure, with the reason.
std::string start_anew(char** argv) {
  if (getauxval(AT_BASE) == 0) {
    // The dynamic loader was run, with this program as its argument.
    return "/proc/self/exe is the loader and not the program";
  }
  std::error_code error;
  // Not the link itself, or the process would be named "exe".
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "/proc/self/exe: " + error.message();
  execv(program.c_str(), argv);
  return program.string() + ": " + std::generic_category().message(errno);
}

}  // namespace

void limit_spinning(char** argv) {
  if (!wait_policy_setting().empty() || max_threads() == 1) return;
  if (omp_get_proc_bind() != omp_proc_bind_false) return;
  const std::string rounds = spins();
  setenv(kVariables[0], rounds.c_str(), 1);
  const std::string reason = start_anew(argv);
  unsetenv(kVariables[0]);  // the runtime has not read it
  std::fprintf(stderr,
               "warning: could not restart with %s=%s (%s): waiting threads spin long, which is "
               "slow on a busy machine; set the variable yourself\n",
               kVariables[0], rounds.c_str(), reason.c_str());
}

std::string wait_policy_setting() {
  std::string text;
  if (max_threads() == 1) return text;
  for (const char* name : kVariables) {
    const char* const value = std::getenv(name);
    if (value) text += (text.empty() ? "" : ", ") + std::string(name) + "=" + value;
  }
  return text;
}

}  // namespace bamtrain
