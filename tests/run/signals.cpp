// Signals before and during steps, and the trigger file.

#include "run/signals.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "on_terminal.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// A named pipe in place of a config. The process that reads it waits until the writer closes it,
/// and the writer can open it only once that process reads.
class Pipe {
 public:
  explicit Pipe(const std::string& path) : path_(path) { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }
  ~Pipe() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void wait_for_reader() {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(descriptor_ >= 0);
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// A sparse shard whose tokens are all 0.
void write_empty_shard(const std::string& path, int32_t tokens) {
  std::vector<int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = tokens;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(header.data()), 4 * 256);
  std::filesystem::resize_file(path, 1024 + 2 * static_cast<uintmax_t>(tokens));
}

}  // namespace

TEST_CASE("a signal while the config is read ends the process with 85") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const Workplace w;
    Pipe config(w.path("pipe"));
    const auto interrupt = [&](int process) {
      config.wait_for_reader();
      kill(process, signal);
    };
    const Outcome o = run_and({"sh", "-c", "echo started; exec \"$0\" --config \"$1\"",
                               bamtrain_program(), w.path("pipe")},
                              "started", interrupt, threads(1));
    INFO("signal " << signal << "\n" << o.output);
    CHECK(o.code == 85);
    CHECK(o.output.find("before the first step") != std::string::npos);
  }
}

TEST_CASE("a signal while shards are opened ends the run with 85 and nothing written") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  // A billion tokens, all of which a run checks before its first step.
  write_empty_shard(w.path("val/000.bin"), 1 << 30);
  const std::string config = write_config(w, "run.json", c);
  const auto terminate = [](int process) { kill(process, SIGTERM); };
  const Outcome o =
      run_and(bamtrain_command(config), "1 process, 1 thread, ", terminate, threads(1));
  INFO(o.output);
  CHECK(o.code == 85);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("a signal before the first step ends all ranks, sent to all or to one") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  for (const bool to_one : {false, true}) {
    const Workplace w;
    Pipe first(w.path("pipe0")), second(w.path("pipe1"));
    std::vector<std::string> command =
        mpirun_command(2, {"sh", "-c",
                           "echo $$ > $1/pid$OMPI_COMM_WORLD_RANK; "
                           "exec $0 --config $1/pipe$OMPI_COMM_WORLD_RANK",
                           bamtrain_program(), w.path(".")});
    command.insert(command.begin(), {"sh", "-c", "echo started; exec \"$0\" \"$@\""});
    const auto interrupt = [&](int launcher) {
      first.wait_for_reader();
      second.wait_for_reader();
      int rank1 = 0;
      std::ifstream(w.path("pid1")) >> rank1;
      REQUIRE(rank1 > 0);
      kill(to_one ? rank1 : launcher, to_one ? SIGTERM : SIGUSR1);
    };
    const Outcome o = run_and(command, "started", interrupt, threads(1));
    INFO((to_one ? "SIGTERM to rank 1\n" : "SIGUSR1 to mpirun\n") << o.output);
    CHECK(o.code == 85);
  }
}

/// The signal mask in `field` ("SigBlk:") of a thread's status file.
uint64_t signal_mask(const std::filesystem::path& status, const std::string& field) {
  std::ifstream in(status);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) == 0) return std::stoull(line.substr(field.size()), nullptr, 16);
  }
  FAIL(field << " in " << status.string());
  return 0;
}

TEST_CASE("while products are computed no signal runs a handler on any thread") {
  // oneDNN's products use the stack pointer to address the heap: a handler's frame would corrupt
  // it.
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1000000;
  uint64_t mask = 0;
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) mask |= uint64_t{1} << (signal - 1);
  int threads = 0, waiting = 0;
  uint64_t caught = mask;
  const Outcome o = run_and(
      bamtrain_command(write_config(w, "run.json", c)), "1/1000000",
      [&](int process) {
        const std::string tasks = "/proc/" + std::to_string(process) + "/task";
        for (const auto& task : std::filesystem::directory_iterator(tasks)) {
          ++threads;
          // In a thread in sigwait(3), these signals are not blocked.
          waiting += (signal_mask(task.path() / "status", "SigBlk:") & mask) != mask;
          caught = signal_mask(task.path() / "status", "SigCgt:") & mask;
        }
        kill(process, SIGUSR1);
      },
      bamtrain::testing::threads(2));
  CHECK(o.code == 85);
  CHECK(threads >= 3);
  CHECK(waiting == 1);
  CHECK(caught == 0);
}

TEST_CASE("the trigger file is a regular file named stop, taken once") {
  const Workplace w;
  const std::string folder = w.path("."), path = w.path("stop");
  CHECK_FALSE(take_trigger_file(folder));
  CHECK_FALSE(take_trigger_file(w.path("absent")));
  std::ofstream(path) << "";
  CHECK(take_trigger_file(folder));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(take_trigger_file(folder));
}

TEST_CASE("a folder, a link or a pipe named stop asks for nothing and stays") {
  const Workplace w;
  const std::string path = w.path("stop");
  SECTION("an empty folder") { std::filesystem::create_directory(path); }
  SECTION("a link to a file") {
    std::ofstream(w.path("file")) << "text";
    std::filesystem::create_symlink(w.path("file"), path);
  }
  SECTION("a link to nothing") { std::filesystem::create_symlink(w.path("absent"), path); }
  SECTION("a pipe") { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }
  CHECK_FALSE(take_trigger_file(w.path(".")));
  std::error_code ignored;
  CHECK(std::filesystem::symlink_status(path, ignored).type() !=
        std::filesystem::file_type::not_found);
}

TEST_CASE("a signal during the final evaluation ends the run with 85") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  // The evaluation takes longer than the test waits for it.
  write_shard(w.path("val/000.bin"), 8'000'000, 211, 3);
  c["eval"] = {{"tokens", 64}, {"lengths", {64}}, {"length_tokens", 4'000'000}};
  const std::string config = write_config(w, "run.json", c);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    const auto interrupt = [&](int process) { kill(process, signal); };
    const Outcome o = run_and(bamtrain_command(config), "\ncheckpoint ", interrupt, threads(1));
    INFO("signal " << signal << "\n" << o.output);
    CHECK(o.code == 85);
    CHECK(o.output.find("after the last step; run the same command again") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(w.path("out/perplexity.json")));
  }
}

TEST_CASE("a lost terminal stops a run like SIGTERM, unless SIGHUP is ignored") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 300;
  const std::string config = write_config(w, "run.json", c);
  const auto hang_up = [](int process) { kill(process, SIGHUP); };
  Outcome o =
      run_and({"sh", "-c", "trap '' HUP; exec \"$0\" --config \"$1\"", bamtrain_program(), config},
              "\n1/300 loss", hang_up, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  std::filesystem::remove_all(w.path("out"));
  c["train"]["steps"] = 100000;
  write_config(w, "run.json", c);
  o = run_and({"env", "--default-signal=HUP", bamtrain_program(), "--config", config},
              "\n1/100000 loss", hang_up, threads(1));
  INFO(o.output);
  CHECK(o.code == 85);
  CHECK(o.output.find("Run the same command to resume.") != std::string::npos);
}

TEST_CASE("a second SIGINT ends the run at once, one after another signal does not") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 100000;
  c["train"]["tokens_per_step"] = 64 * 4 * 256;  // steps take long
  const std::string config = write_config(w, "run.json", c);
  const std::vector<std::string> command = {"env", "--default-signal=HUP", bamtrain_program(),
                                            "--config", config};
  Outcome o = run_and(
      command, "\n1/100000 loss",
      [](int process) {
        kill(process, SIGHUP);  // delivered first if both are pending
        kill(process, SIGINT);
      },
      threads(1));
  INFO(o.output);
  CHECK(o.code == 85);
  std::filesystem::remove_all(w.path("out"));
  const auto interrupt = [](int process) { kill(process, SIGINT); };
  o = run_and(command,
              {{"\n1/100000 loss", interrupt}, {"Ctrl-C again quits at once\n", interrupt}},
              threads(1));
  INFO(o.output);
  CHECK(o.code == 130);
  CHECK(o.output.find("interrupted; checkpoint saved") == std::string::npos);
}

TEST_CASE("a SIGINT says at once at which step the run stops, other signals say nothing") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1'000'000;
  const std::string config = write_config(w, "run.json", c);
  const auto number_after = [](const std::string& output, const std::string& text) {
    const size_t at = output.find(text);
    INFO(output);
    REQUIRE(at != std::string::npos);
    CHECK(output.find(text, at + 1) == std::string::npos);
    return std::stoll(output.substr(at + text.size()));
  };
  const std::string announced = "\nbamtrain: finishing step ";
  const auto send = [](int signal) { return [signal](int process) { kill(process, signal); }; };
  Outcome o = run_and(bamtrain_command(config), "\n1/1000000 loss", send(SIGINT), threads(1));
  CHECK(o.code == 85);
  CHECK(o.output.find(", then saving; Ctrl-C again quits at once\n") != std::string::npos);
  const auto step = number_after(o.output, announced);
  CHECK(step >= 2);
  CHECK(step == number_after(o.output, "interrupted; checkpoint saved at step "));
  CHECK(std::filesystem::exists(w.path("out/" + checkpoint_name(step))));

  std::filesystem::remove_all(w.path("out"));
  o = run_and(bamtrain_command(config), "\n1/1000000 loss", send(SIGTERM), threads(1));
  CHECK(o.code == 85);
  CHECK(o.output.find("Ctrl-C") == std::string::npos);
}

TEST_CASE("after Ctrl-C on a terminal the announcement has a line of its own") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1'000'000;
  const std::string shown =
      on_terminal(100,
                  {"env", "TERM=xterm", "NO_COLOR=", "OMP_NUM_THREADS=1", bamtrain_program(),
                   "--config", write_config(w, "run.json", c)},
                  {"/1000000 loss", "\x03"});
  Screen screen(100, 100);
  screen.show(shown);
  const std::vector<std::string>& lines = screen.lines();
  INFO(shown);
  const auto announced = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("bamtrain: finishing step ");
  });
  REQUIRE(announced != lines.end());
  CHECK((announced - 1)->find("/1000000 loss") != std::string::npos);
  CHECK(announced->ends_with(", then saving; Ctrl-C again quits at once"));
  CHECK((lines.end() - 2)->starts_with("interrupted; checkpoint saved at step "));
}

TEST_CASE("without a step left the announcement names none") {
  CHECK(stopping_message(9) ==
        "bamtrain: finishing step 9, then saving; Ctrl-C again quits at once\n");
  CHECK(stopping_message(0) == "bamtrain: finishing the run; Ctrl-C again quits at once\n");
}

TEST_CASE("a reader that is gone from the start costs no run") {
  const Workplace w;
  // The reader exits before the program starts.
  const Outcome o =
      run({"sh", "-c", "{ sleep 0.2; \"$0\" --config \"$1\"; echo \"ended with $?\" >&2; } | true",
           bamtrain_program(), write_config(w, "run.json", small_run(w))},
          threads(1));
  INFO(o.output);
  CHECK(o.output.find("ended with 0") != std::string::npos);
  CHECK(o.output.find("standard output: write failed") != std::string::npos);
}

TEST_CASE("a reader that goes away costs no step") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  const Outcome o =
      run({"sh", "-c", "{ \"$0\" --config \"$1\"; echo \"ended with $?\" >&2; } | head -n 1",
           bamtrain_program(), write_config(w, "run.json", c)},
          threads(1));
  INFO(o.output);
  CHECK(o.output.find("ended with 0") != std::string::npos);
  CHECK(std::filesystem::exists(w.path("out/checkpoint-00000008")));
}
