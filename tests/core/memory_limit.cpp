#include "core/memory_limit.h"

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "catch.h"
#include "core/arena.h"

using namespace bamtrain;

namespace {

/// A folder that stands for "/", removed at the end of the test.
class Root {
 public:
  Root() : folder_((std::filesystem::temp_directory_path() / "limit-XXXXXX").string()) {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
  }
  ~Root() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
  std::optional<int64_t> limit() const { return control_group_limit(folder_); }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("version 2: the least memory.max from the process's group up to the mount counts") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/batch/job 7:a/task\n");
  CHECK_FALSE(root.limit().has_value());
  root.write("/sys/fs/cgroup/batch/job 7:a/task/memory.max", "max\n");
  root.write("/sys/fs/cgroup/batch/memory.max", "max\n");
  CHECK_FALSE(root.limit().has_value());
  root.write("/sys/fs/cgroup/batch/job 7:a/memory.max", "3000000000\n");
  CHECK(root.limit() == 3000000000);
  root.write("/sys/fs/cgroup/memory.max", "2000000000\n");
  CHECK(root.limit() == 2000000000);
  root.write("/sys/fs/cgroup/batch/job 7:a/task/memory.max", "4096\n");
  CHECK(root.limit() == 4096);
  root.write("/sys/fs/cgroup/batch/other/memory.max", "1\n");
  CHECK(root.limit() == 4096);
}

TEST_CASE("version 1: the group of the memory controller counts, whatever the others say") {
  const Root root;
  root.write("/proc/self/cgroup",
             "12:pids:/p\n5:cpu,memory,cpuacct:/slurm/job\n4:name=memory:/n\n1:memory_x:/x\n");
  for (const char* group : {"p", "n", "x"}) {
    root.write(std::string("/sys/fs/cgroup/memory/") + group + "/memory.limit_in_bytes", "5\n");
  }
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(root.limit() == 9223372036854771712);  // version 1's value for "no limit"
  root.write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "800000\n");
  CHECK(root.limit() == 800000);
  root.write("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "700000\n");
  CHECK(root.limit() == 700000);
}

TEST_CASE("a container that mounts its own group under the path outside is limited by it") {
  const Root root;
  root.write("/proc/self/cgroup", "4:memory:/docker/0123\n0::/\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600\n");
  CHECK(root.limit() == 600);
  root.write("/sys/fs/cgroup/memory.max", "500\n");
  CHECK(root.limit() == 500);
}

TEST_CASE("lines and files that mean nothing set no limit") {
  const Root root;
  CHECK_FALSE(root.limit().has_value());
  root.write("/proc/self/cgroup", "\nmemory\n4:memory\n:\n0::a/b\n");
  root.write("/sys/fs/cgroup/memory.max", "unlimited\n");
  CHECK_FALSE(root.limit().has_value());
  root.write("/sys/fs/cgroup/memory.max", "-1\n");
  CHECK_FALSE(root.limit().has_value());
  root.write("/sys/fs/cgroup/memory.max", "99999999999999999999999\n");
  CHECK_FALSE(root.limit().has_value());
  root.write("/sys/fs/cgroup/memory.max", "");
  CHECK_FALSE(root.limit().has_value());
}

TEST_CASE("a process may use what the machine has, or its own limit where that is less") {
  std::ifstream info("/proc/meminfo");
  std::string name;
  int64_t kibibytes = 0;
  REQUIRE((info >> name >> kibibytes));
  REQUIRE(name == "MemTotal:");
  const MemoryLimit before = memory_limit();
  CHECK(before.bytes > 0);
  CHECK(before.bytes <= kibibytes * 1024);

  rlimit own = {};
  REQUIRE(getrlimit(RLIMIT_AS, &own) == 0);
  rlimit lower = own;
  lower.rlim_cur = static_cast<rlim_t>(before.bytes / 2);
  REQUIRE(setrlimit(RLIMIT_AS, &lower) == 0);
  const MemoryLimit limited = memory_limit();
  REQUIRE(setrlimit(RLIMIT_AS, &own) == 0);
  CHECK(limited.bytes == before.bytes / 2);
  CHECK(limited.source == std::string("process limit"));
}

TEST_CASE("a plan that does not fit is refused") {
  const int64_t limit = memory_limit().bytes;
  CHECK_NOTHROW(host_memory().check_fits(limit));
  CHECK_THROWS_AS(host_memory().check_fits(limit + 1), Error);
  CHECK_THROWS_AS(host_memory().check_fits(std::numeric_limits<int64_t>::max()), Error);
  Arena arena;
  Tensor t, u;
  arena.add("t", &t, Dtype::f32, {limit / 8});  // 4 bytes each: half of the limit
  arena.add("u", &u, Dtype::f32, {limit / 4});
  CHECK_THROWS_AS(arena.commit(), Error);
}
