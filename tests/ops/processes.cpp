// Matrix products in processes with different environments.

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "catch.h"
#include "core/error.h"

namespace bamtrain {
namespace {

struct Ended {
  int status = -1;
  std::string output;
};

/// Runs product_bits under `environment`, e.g. "OMP_NUM_THREADS=2".
Ended run(const std::string& environment, const std::string& arguments = "") {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const std::string command = "env " + environment + " '" + std::string(build ? build : "build") +
                              "/tests/ops/product_bits' " + arguments;
  INFO(command);
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    ended.output.append(buffer, n);
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  ended.status = WEXITSTATUS(status);
  return ended;
}

TEST_CASE("products of fp32 are in fp32 whatever the environment has oneDNN do") {
  const Ended plain = run("OMP_NUM_THREADS=1");
  REQUIRE(plain.status == 0);
  for (const char* mode : {"BF16", "ANY"}) {
    const Ended other = run(std::string("OMP_NUM_THREADS=1 ONEDNN_DEFAULT_FPMATH_MODE=") + mode +
                            " DNNL_DEFAULT_FPMATH_MODE=" + mode);
    CHECK(other.output == plain.output);
  }
}

TEST_CASE("products give the same bits where OpenMP starts fewer threads than were asked for") {
  // Without a limit on oneDNN, and as on a processor without AVX-512.
  for (const std::string isa : {"", "ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 "}) {
    const Ended one = run(isa + "OMP_NUM_THREADS=1");
    REQUIRE(one.status == 0);
    REQUIRE(one.output.size() == 6 * 17);
    for (const char* teams :
         {"OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=2", "OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=3",
          "OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=4", "OMP_THREAD_LIMIT=2 OMP_NUM_THREADS=4",
          "OMP_DYNAMIC=true OMP_NUM_THREADS=8", "OMP_NUM_THREADS=3"}) {
      INFO(isa << teams);
      const Ended other = run(isa + teams);
      CHECK(other.status == 0);
      CHECK(other.output == one.output);
    }
  }
}

TEST_CASE("a product whose threads get no memory is an Error, not the end of the process") {
  const Ended ended = run("OMP_NUM_THREADS=2", "refuse");
  CHECK(ended.status == static_cast<int>(ExitCode::device));
  CHECK(ended.output.find("oneDNN could not allocate memory") != std::string::npos);
}

}  // namespace
}  // namespace bamtrain
