// System limits under which the program cannot work.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("a limit of stacks that no thread can work with is refused by name") {
  const Outcome o = run({"sh", "-c", "ulimit -s 64; exec \"$0\" --version", bamtrain_program()});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::device));
  CHECK(o.output.find("ulimit -s") != std::string::npos);
}

TEST_CASE("a thread that the system refuses is named as one, with the limit to raise") {
  if (geteuid() != 0 || run({"sh", "-c", "command -v setpriv && command -v bash"}).code != 0) {
    WARN("skipped: takes root, setpriv and bash to become a user without processes");
    return;
  }
  const Workplace w;
  const std::string program = w.path("bamtrain"),
                    config = write_config(w, "run.json", small_run(w));
  std::filesystem::copy_file(bamtrain_program(), program);
  for (const std::string& path : {w.path("."), program, config}) {
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(0755));
  }
  // Limits below the threads of a parallel loop. The OpenMP runtime would exit with code 1.
  constexpr int kThreads = 8;
  for (int limit = 1; limit < kThreads; ++limit) {
    const Outcome o = run(
        {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c",
         "ulimit -u " + std::to_string(limit) + "; exec \"$0\" --config \"$1\"", program, config},
        threads(kThreads));
    INFO(limit << "\n" << o.output);
    CHECK(o.code == static_cast<int>(ExitCode::device));
    CHECK(o.output.find("threads: cannot start a thread") != std::string::npos);
    CHECK(o.output.find("ulimit -u") != std::string::npos);
  }
}

TEST_CASE("a thread that has no room for its stack is named with the limit of memory") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  int named = 0;
  // From what the program needs alone to what it needs with its threads, in steps of a stack.
  for (int mebibytes = 56; mebibytes <= 160; mebibytes += 8) {
    const Outcome o =
        run({"sh", "-c",
             "ulimit -v " + std::to_string(mebibytes * 1024) + "; exec \"$0\" --config \"$1\"",
             bamtrain_program(), config},
            threads(1));
    INFO(mebibytes << "\n" << o.output);
    if (o.output.find("cannot start a thread") == std::string::npos) continue;
    ++named;
    CHECK(o.output.find("raise the limit of memory (ulimit -v)") != std::string::npos);
    CHECK(o.output.find("ulimit -u") == std::string::npos);
  }
  if (named == 0) WARN("no limit of these was met by a thread");
}

TEST_CASE("memory that runs out is named as such, however little there is") {
  const Workplace w;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", small_run(w))), threads(1)).code == 0);
  std::ofstream(w.path("out/samples.jsonl"))
      << R"({"step":8,"prompt":"","text":")" << std::string(60'000'000, 'a') << "\"}\n";
  const std::string reported = "exec \"$0\" report \"$1\" --output \"$2\"";
  bool refused = false;
  // What the program and its libraries take before any work depends on the build.
  for (int kilobytes = 150000; kilobytes <= 900000 && !refused; kilobytes += 150000) {
    const Outcome o = run({"sh", "-c", "ulimit -v " + std::to_string(kilobytes) + "; " + reported,
                           bamtrain_program(), w.path("out"), w.path("page.html")},
                          threads(1));
    INFO(kilobytes << "\n" << o.output.substr(0, 1000));
    CHECK(o.code != static_cast<int>(ExitCode::internal));
    refused = o.output.find("bamtrain: memory: allocation failed (") != std::string::npos;
    if (!refused) continue;
    CHECK(o.code == static_cast<int>(ExitCode::device));
    CHECK(o.output.find("; ", o.output.find("allocation failed")) != std::string::npos);
  }
  CHECK(refused);
}
