// What is printed arrives, in its order, or the exit code says that it did not.

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Runs the program with these arguments and standard output in `place`.
Outcome run_into(const std::string& place, const std::string& arguments) {
  return run({"sh", "-c", "exec \"$0\" " + arguments + " > " + place, bamtrain_program()},
             threads(1));
}

}  // namespace

TEST_CASE("output that finds no place is an error of files") {
  struct stat info {};
  if (stat("/dev/full", &info) != 0 || !S_ISCHR(info.st_mode)) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  // More than a buffer, less than one, and what the option parser prints.
  for (const std::string& arguments :
       {std::string("--print-schema"), "--config " + config + " --dry-run", std::string("--help"),
        std::string("--version")}) {
    const Outcome o = run_into("/dev/full", arguments);
    INFO(arguments << "\n" << o.output);
    CHECK(o.code == static_cast<int>(ExitCode::io));
    CHECK(o.output.find("bamtrain: standard output: expected") != std::string::npos);
    CHECK(o.output.find("remedy") != std::string::npos);
  }
  const Outcome schema = run_into(w.path("schema.json"), "--print-schema");
  CHECK(schema.code == 0);
  CHECK(std::filesystem::file_size(w.path("schema.json")) > 4096);
}

TEST_CASE("what was printed before an error stands before it") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  c["eval"] = {{"lengths", {16}}, {"tokens", 64}};
  std::filesystem::create_directories(w.path("out/perplexity.json"));  // in the way of the result
  const std::string config = write_config(w, "run.json", c);
  // One file for both, as in a job's log.
  const Outcome o = run_into(w.path("log") + " 2>&1", "--config " + config);
  const Outcome log = run({"cat", w.path("log")});
  INFO(log.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  const size_t printed = log.output.find("\ncheckpoint "), error = log.output.find("\nbamtrain: ");
  REQUIRE(printed != std::string::npos);
  REQUIRE(error != std::string::npos);
  CHECK(printed < error);
}

TEST_CASE("notes that find no place change neither the result nor the exit code") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  c["model"]["attention"] = {{"prior", {{"name", "rope"}}}, {"scale", {{"name", "none"}}}};
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
  const std::string eval = "eval --checkpoint " + w.path("out/checkpoint-00000001") +
                           " --lengths 16 --max-tokens 64 --set model.attention.prior.theta=500";
  const Outcome heard = run_into(w.path("heard"), eval);
  REQUIRE(heard.code == 0);
  REQUIRE(heard.output.find("not as trained: model.attention.prior.theta") != std::string::npos);
  for (const std::string nowhere : {" 2> /dev/full", " 2>&-"}) {
    CHECK(run_into(w.path("unheard") + nowhere, eval).code == 0);
    CHECK(read_text(w.path("unheard")) == read_text(w.path("heard")));
  }
}
