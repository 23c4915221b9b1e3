// How the program bounds the spinning of its threads: it restarts itself, at most once, and nothing
// else changes. The OpenMP runtime prints a message each time it is loaded (OMP_DISPLAY_ENV).

#include <dlfcn.h>
#include <sys/auxv.h>

#include <csignal>
#include <filesystem>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// `command` in an environment that sets neither how threads wait nor where they run.
std::vector<std::string> undecided(const std::vector<std::string>& command) {
  std::vector<std::string> out = {"env"};
  for (const char* name :
       {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    out.insert(out.end(), {"-u", name});
  }
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

Environment displayed(int n) {
  Environment environment = threads(n);
  environment.push_back("OMP_DISPLAY_ENV=verbose");
  return environment;
}

int times(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

int times_started(const Outcome& o) { return times(o.output, "DISPLAY ENVIRONMENT BEGIN"); }

}  // namespace

TEST_CASE("the program starts itself anew once, with the same process, arguments and signals") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1'000'000;
  const std::string config = write_config(w, "a config.json", c);
  std::string environment, arguments;
  const auto look = [&](int process) {
    const std::string folder = "/proc/" + std::to_string(process);
    environment = read_text(folder + "/environ");
    arguments = read_text(folder + "/cmdline");
    kill(process, SIGUSR1);
  };
  const Outcome o = run_and(
      undecided({"bash", "-c", "exec -a 'an old name' \"$0\" \"$@\"", bamtrain_program(),
                 "--config", config, "--set", "name=two  words", "--set", "device=\"cpu\""}),
      "1/1000000 loss", look, displayed(2));
  INFO(o.output);
  CHECK(o.code == 85);
  CHECK(times_started(o) == 2);
  CHECK(times(environment, "GOMP_SPINCOUNT=") == 1);
  CHECK(times(environment, "OMP_WAIT_POLICY=") == 0);
  const std::string set = environment.substr(environment.find("GOMP_SPINCOUNT="));
  CHECK(o.output.find("1 process, 2 threads (" + std::string(set.c_str()) + ")") !=
        std::string::npos);
  std::string expected;
  for (const char* argument : {"an old name", "--config", config.c_str(), "--set",
                               "name=two  words", "--set", "device=\"cpu\""}) {
    expected += argument;
    expected += '\0';
  }
  CHECK(arguments == expected);
}

TEST_CASE("exit codes are those of the second start") {
  const Workplace w;
  const struct {
    std::vector<std::string> arguments;
    int code;
  } cases[] = {{{"--version"}, 0}, {{"--unknown"}, 2}, {{"--config", w.path("none.json")}, 6}};
  for (const auto& x : cases) {
    std::vector<std::string> command = {bamtrain_program()};
    command.insert(command.end(), x.arguments.begin(), x.arguments.end());
    const Outcome o = run(undecided(command), displayed(2));
    INFO(o.output);
    CHECK(o.code == x.code);
    CHECK(times_started(o) == 2);
  }
}

TEST_CASE("what the user has set is kept") {
  for (const char* setting :
       {"OMP_WAIT_POLICY=active", "OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=77"}) {
    const Workplace w;
    nlohmann::json c = small_run(w);
    c["train"]["steps"] = 1;
    const std::string config = write_config(w, "run.json", c);
    // After `env -u`, which would remove this setting.
    auto command = undecided({"env", setting, bamtrain_program(), "--config", config});
    const Outcome o = run(command, displayed(2));
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(times_started(o) == 1);
    CHECK(o.output.find("1 process, 2 threads (" + std::string(setting) + ")") !=
          std::string::npos);
  }
}

TEST_CASE("one thread, and threads that are bound to cores, wait as the runtime lets them") {
  const Outcome one = run(undecided({bamtrain_program(), "--version"}), displayed(1));
  INFO(one.output);
  CHECK(one.code == 0);
  CHECK(times_started(one) == 1);
  for (const char* setting : {"OMP_PROC_BIND=true", "OMP_PLACES=cores"}) {
    const Outcome bound =
        run(undecided({"env", setting, bamtrain_program(), "--version"}), displayed(2));
    INFO(bound.output);
    CHECK(bound.code == 0);
    CHECK(times_started(bound) == 1);
  }
}

TEST_CASE("a program that cannot be started anew says so and goes on") {
  const Workplace w;
  std::filesystem::copy_file(bamtrain_program(), w.path("copy"));
  const std::string removed = "exec 3<\"$0\"; rm \"$0\"; exec /proc/self/fd/3 --version";
  Dl_info loader = {};
  REQUIRE(dladdr(reinterpret_cast<void*>(getauxval(AT_BASE)), &loader) != 0);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"sh", "-c", removed, w.path("copy")},
        {loader.dli_fname, bamtrain_program(), "--version"}}) {
    const Outcome o = run(undecided(command), displayed(2));
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(times_started(o) == 1);
    CHECK(times(o.output, "warning: ") == 1);
    CHECK(o.output.find("could not restart with GOMP_SPINCOUNT=") != std::string::npos);
  }
}

TEST_CASE("under mpirun every process starts itself anew, and the run has the same bits") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  const auto train = [&](const char* out, int processes) {
    c["out_dir"] = w.path(out);
    auto command = bamtrain_command(write_config(w, "run.json", c));
    if (processes > 1) command = mpirun_command(processes, command);
    const Outcome o = run(undecided(command), displayed(2));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(times_started(o) == 2 * processes);
    return digest(w.path(out) + "/checkpoint-00000008");
  };
  CHECK(train("two", 2) == train("one", 1));
}
