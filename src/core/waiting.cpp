#include "core/waiting.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/parallel.h"

namespace bamtrain {

namespace {

/// Rounds that a thread spins before it sleeps: tens of microseconds, about what it takes to be
/// woken, so that waiting costs little more than the better of the two. GCC's runtime takes 300,000
/// by itself, longer than a piece of work of a small model: idle, both are as fast; beside busy
/// programs any number up to 1,000 is the fastest (bench/results/cpu-threads.md).
constexpr const char* kSpins = "1000";

constexpr const char* kVariables[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"};

/// Replaces the program by itself. Returns why it could not.
std::string start_anew(char** argv) {
  if (getauxval(AT_BASE) == 0) {
    // The dynamic loader was started, with this program as its argument.
    return "/proc/self/exe is the loader and not the program";
  }
  std::error_code error;
  // Not the link itself: the process would be called "exe" from then on.
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "/proc/self/exe: " + error.message();
  execv(program.c_str(), argv);
  return program.string() + ": " + std::generic_category().message(errno);
}

}  // namespace

void bound_spinning(char** argv) {
  if (!waiting_setting().empty() || max_threads() == 1) return;
  if (omp_get_proc_bind() != omp_proc_bind_false) return;
  setenv(kVariables[0], kSpins, 1);
  const std::string reason = start_anew(argv);
  unsetenv(kVariables[0]);  // nobody has read it
  std::fprintf(stderr,
               "warning: the threads spin long where they wait, which is slow beside other "
               "programs: not started anew with %s=%s (%s); remedy: set it yourself\n",
               kVariables[0], kSpins, reason.c_str());
}

std::string waiting_setting() {
  std::string text;
  if (max_threads() == 1) return text;
  for (const char* name : kVariables) {
    const char* const value = std::getenv(name);
    if (value) text += (text.empty() ? "" : ", ") + std::string(name) + "=" + value;
  }
  return text;
}

}  // namespace bamtrain
