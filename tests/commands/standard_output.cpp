// Output arrives in order, or the exit code reports that it did not.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "core/error.h"
#include "on_terminal.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Runs the program with these arguments and standard output redirected to `place`.
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
  // More than a buffer, less than a buffer, and output of the option parser.
  for (const std::string& arguments :
       {std::string("--print-schema"), "--config " + config + " --dry-run", std::string("--help"),
        std::string("--version")}) {
    const Outcome o = run_into("/dev/full", arguments);
    INFO(arguments << "\n" << o.output);
    CHECK(o.code == static_cast<int>(ExitCode::io));
    CHECK(o.output.find("bamtrain: standard output: write failed") != std::string::npos);
    CHECK(o.output.find("; ") != std::string::npos);
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
  c["log"] = {{"tensorboard", true}};
  std::filesystem::create_directories(w.path("out/tensorboard"));
  std::ofstream(w.path("out/tensorboard/perplexity")) << "in the way of the result";
  const std::string config = write_config(w, "run.json", c);
  // One file for both streams, as in a job's log.
  const Outcome o = run_into(w.path("log") + " 2>&1", "--config " + config);
  const Outcome log = run({"cat", w.path("log")});
  INFO(log.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  const size_t printed = log.output.find("\ncheckpoint "), error = log.output.find("\nbamtrain: ");
  REQUIRE(printed != std::string::npos);
  REQUIRE(error != std::string::npos);
  CHECK(printed < error);
}

TEST_CASE("progress that finds no place is said once, and the run goes on") {
  struct stat info {};
  if (stat("/dev/full", &info) != 0 || !S_ISCHR(info.st_mode)) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const Workplace w;
  const Outcome o = run_into("/dev/full", "--config " + write_config(w, "run.json", small_run(w)));
  INFO(o.output);
  CHECK(o.code == 0);
  const std::string said = "standard output: write failed (No space left on device)";
  REQUIRE(o.output.find(said) != std::string::npos);
  CHECK(o.output.find(said, o.output.find(said) + 1) == std::string::npos);
  CHECK(std::filesystem::exists(w.path("out/checkpoint-00000008")));
}

namespace {

std::vector<std::string> with(std::vector<std::string> environment,
                              const std::vector<std::string>& command) {
  const Environment all = threads(1);
  environment.insert(environment.end(), all.begin(), all.end());
  environment.insert(environment.begin(), "env");
  environment.insert(environment.end(), command.begin(), command.end());
  return environment;
}

/// Whether `text` moves the cursor: an escape, or a carriage return without a line feed.
bool moves_the_cursor(const std::string& text) {
  for (size_t i = text.find('\r'); i != std::string::npos; i = text.find('\r', i + 1)) {
    if (i + 1 < text.size() && text[i + 1] != '\n' && text[i + 1] != '\r') return true;
  }
  return text.find('\033') != std::string::npos;
}

}  // namespace

TEST_CASE("a terminal gets a live line, a dumb one and NO_COLOR plain lines") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 2;
  const auto trained = [&](const std::string& variable) {
    c["out_dir"] = w.path(variable);
    return on_terminal(100, with({"TERM=xterm", "NO_COLOR=", variable},
                                 bamtrain_command(write_config(w, "run.json", c))));
  };
  const std::string live = trained("TERM=xterm-256color");
  INFO(live);
  CHECK(moves_the_cursor(live));
  CHECK(
      live.find("parameters: embedding 13,504, attention 24,576, mlp 36,864, norms 320, prior 24, "
                "scale 8, head 13,504\r\n") != std::string::npos);
  for (const char* variable : {"TERM=dumb", "NO_COLOR=1"}) {
    const std::string plain = trained(variable);
    INFO(plain);
    CHECK_FALSE(moves_the_cursor(plain));
    CHECK(plain.find("\r\n2/2 loss") != std::string::npos);
  }
}

TEST_CASE("under mpirun a log has plain lines, a terminal the live line") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 2;
  const auto trained = [&](const std::string& out_dir, const std::string& place) {
    c["out_dir"] = w.path(out_dir);
    const auto command = mpirun_command(2, bamtrain_command(write_config(w, out_dir + ".json", c)));
    std::vector<std::string> shell = {"sh", "-c", "\"$@\" " + place, "sh"};
    shell.insert(shell.end(), command.begin(), command.end());
    return on_terminal(100, with({"TERM=xterm", "NO_COLOR="}, shell));
  };
  const std::string shown = trained("shown", "");
  INFO(shown);
  CHECK(moves_the_cursor(shown));
  CHECK(shown.find("2/2 loss") != std::string::npos);
  trained("logged", "> " + w.path("log"));
  const std::string log = read_text(w.path("log"));
  INFO(log);
  CHECK_FALSE(moves_the_cursor(log));
  CHECK(log.find("2/2 loss") != std::string::npos);
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
  REQUIRE(heard.output.find("changed since training: model.attention.prior.theta") !=
          std::string::npos);
  for (const std::string nowhere : {" 2> /dev/full", " 2>&-"}) {
    CHECK(run_into(w.path("unheard") + nowhere, eval).code == 0);
    CHECK(read_text(w.path("unheard")) == read_text(w.path("heard")));
  }
}
