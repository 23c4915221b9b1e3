#include "data_tools/encoder_pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "tools/support.h"

namespace bamtrain::testing {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// Runs in a process with room for the stacks of two of four threads. Returns 0 if the pool's
/// constructor throws the right error, and leaves neither threads nor blocked signals.
int without_room(const Tokenizer& tokenizer) {
  constexpr size_t kStack = size_t{1} << 30;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  if (pthread_setattr_default_np(&attributes) != 0) return 10;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + 5 * kStack / 2;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 11;
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  try {
    EncoderPool(tokenizer, {}, 4);
    return 12;
  } catch (const Error& e) {
    if (e.code() != ExitCode::device) return 13;
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  if (sigismember(&after, SIGTERM) != sigismember(&before, SIGTERM)) return 14;
  int tasks = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    tasks += !task.path().empty();
  }
  return tasks == 1 ? 0 : 15;
}

TEST_CASE("a pool that cannot start all of its threads ends those that it started") {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int result = 16;
    try {
      result = without_room(tokenizer);
    } catch (...) {
    }
    _exit(result);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

TEST_CASE("a pool that is dropped does not wait for batches that no thread has begun") {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  std::vector<std::future<EncodedBatch>> results;
  {
    EncoderPool pool(tokenizer, {}, 2);
    for (int i = 0; i < 100; ++i) results.push_back(pool.submit(Batch()));
  }
  for (std::future<EncodedBatch>& result : results) {
    REQUIRE(result.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  }
}

}  // namespace
}  // namespace bamtrain::testing
