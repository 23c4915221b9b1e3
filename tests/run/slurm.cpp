// scripts/slurm/run.sh: a signal before the time limit saves a checkpoint and requeues the job.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain::testing;

namespace {

std::vector<std::string> in_a_job(std::vector<std::string> command) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  command.insert(command.begin(), std::string(source) + "/scripts/slurm/run.sh");
  return command;
}

/// A fake scontrol that writes its arguments to the workplace and exits with `code`. Returns an
/// environment whose PATH finds it first.
Environment with_scontrol(const Workplace& w, int code) {
  std::filesystem::create_directories(w.path("bin"));
  std::ofstream(w.path("bin/scontrol"))
      << "#!/bin/sh\necho \"$@\" >> " << w.path("queue") << "\nexit " << code << "\n";
  std::filesystem::permissions(w.path("bin/scontrol"), std::filesystem::perms::owner_all);
  Environment e = threads(1);
  e.push_back("PATH=" + w.path("bin") + ":" + std::getenv("PATH"));
  e.emplace_back("SLURM_JOB_ID=77");
  return e;
}

void warn_of_limit(int process) { kill(process, SIGUSR1); }

}  // namespace

TEST_CASE("a job that is told of its time limit saves, is queued again, and resumes") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1000000;
  c["schedule"]["name"] = "constant";
  const std::string config = write_config(w, "run.json", c);
  const Environment e = with_scontrol(w, 0);
  const Outcome o = run_and(in_a_job(bamtrain_command(config)), "1/1000000", warn_of_limit, e);
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(read_text(w.path("queue")) == "requeue 77\n");
  const int64_t saved = static_cast<int64_t>(read_metrics(w.path("out")).size());
  REQUIRE(saved > 0);

  const Outcome again =
      run(in_a_job(bamtrain_command(config, {"train.stop_at=" + std::to_string(saved + 2)})), e);
  INFO(again.output);
  CHECK(again.code == 0);
  CHECK(static_cast<int64_t>(read_metrics(w.path("out")).size()) == saved + 2);
  CHECK(read_text(w.path("queue")) == "requeue 77\n");
}

TEST_CASE("outside of a job, or where it cannot be queued again, the exit code stays 85") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1000000;
  const std::string config = write_config(w, "run.json", c);
  Environment outside = with_scontrol(w, 0);
  outside.back() = "SLURM_JOB_ID=";
  CHECK(run_and(in_a_job(bamtrain_command(config)), "/1000000", warn_of_limit, outside).code == 85);
  CHECK_FALSE(std::filesystem::exists(w.path("queue")));
  CHECK(run_and(in_a_job(bamtrain_command(config)), "/1000000", warn_of_limit, with_scontrol(w, 1))
            .code == 85);
}

TEST_CASE("a command that ends as soon as the signal reaches it keeps its exit code, every time") {
  const Workplace w;
  // By sigaction(): Perl defers a handler in %SIG, and one that comes just before sleep() would
  // wait.
  const std::string command =
      "sigaction(SIGUSR1, POSIX::SigAction->new(sub { POSIX::_exit(85) })); "
      "$| = 1; print 'ready'; sleep";
  for (int i = 0; i < 40; ++i) {
    const Outcome o = run_and(in_a_job({"perl", "-MPOSIX", "-e", command}), "ready", warn_of_limit,
                              with_scontrol(w, 1));
    INFO(i << ": " << o.output);
    REQUIRE(o.code == 85);
  }
}

TEST_CASE("a job that has lost a process is queued again, but not for ever") {
  const Workplace w;
  Environment e = with_scontrol(w, 0);
  CHECK(run(in_a_job({"sh", "-c", "exit 8"}), e).code == 0);
  CHECK(run(in_a_job({"sh", "-c", "exit 137"}), e).code == 0);
  CHECK(read_text(w.path("queue")) == "requeue 77\nrequeue 77\n");
  e.emplace_back("SLURM_RESTART_COUNT=9");
  CHECK(run(in_a_job({"sh", "-c", "exit 8"}), e).code == 8);
  CHECK(read_text(w.path("queue")) == "requeue 77\nrequeue 77\n");
}

TEST_CASE("a command that fails keeps its exit code and is not queued again") {
  const Workplace w;
  const Outcome o = run(in_a_job(bamtrain_command(w.path("none.json"))), with_scontrol(w, 0));
  CHECK(o.code == 6);
  CHECK_FALSE(std::filesystem::exists(w.path("queue")));
  CHECK(run(in_a_job({})).code == 2);
}
