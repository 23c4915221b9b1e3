#include "dist/communicator.h"

#include <new>
#include <string>

#include "catch.h"
#include "core/error.h"
#include "dist/collective.h"
#include "dist/launch.h"
#include "launch_environment.h"

namespace bamtrain {
namespace {

std::string message_of(int size, int64_t groups) {
  try {
    check_process_count(size, groups);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::distributed);
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a process started directly is its own communicator") {
  const LaunchEnvironment nothing{};
  const auto communicator = make_communicator();
  CHECK(communicator->rank() == 0);
  CHECK(communicator->size() == 1);
  float f[] = {1.5f, -2.0f};
  double d[] = {0.25};
  communicator->sum(d, 1);
  CHECK(d[0] == 0.25);
  CHECK(communicator->any(true));
  CHECK_FALSE(communicator->any(false));
  communicator->broadcast(f, sizeof(f), 0);
  CHECK(f[0] == 1.5f);
  CHECK_THROWS_AS(communicator->broadcast(f, sizeof(f), 1), Error);
  communicator->barrier();
  communicator->abort(3);  // no other process to abort: returns
}

TEST_CASE(
    "alone, an error is thrown whoever was to meet it, and work is done whoever was to do it") {
  const LaunchEnvironment nothing{};
  const auto communicator = make_communicator();
  const auto fail = [] { throw Error(ExitCode::data, "here", "this", "that", ""); };
  CHECK_THROWS_AS(run_on_all_ranks(*communicator, fail), Error);
  CHECK_THROWS_AS(run_on_rank_zero(*communicator, fail), Error);
  CHECK_THROWS_AS(fail_on_all_ranks(*communicator, std::make_exception_ptr(std::bad_alloc())),
                  std::bad_alloc);
  int done = 0;
  run_on_all_ranks(*communicator, [&] { done += 1; });
  run_on_rank_zero(*communicator, [&] { done += 2; });
  CHECK(done == 3);
}

TEST_CASE("there are as many processes as groups at most") {
  for (int64_t groups : {1, 2, 7, 8}) {
    for (int size = 1; size <= 9; ++size) {
      INFO(size << " processes, " << groups << " groups");
      CHECK(message_of(size, groups).empty() == (size <= groups));
    }
  }
  CHECK(contains(message_of(9, 8), "expected 1 to train.lanes = 8, found 9"));
  CHECK(contains(message_of(2, 1), "expected 1, as train.lanes, found 2"));
  CHECK(contains(message_of(0, 4), "train.lanes = 4"));
}

TEST_CASE("ranks of one machine that do not follow one another are named") {
  const auto scattered = [](std::vector<int> machines) { return scattered_ranks(machines); };
  CHECK(scattered({0}).empty());
  CHECK(scattered({0, 0, 2, 2, 4}).empty());
  CHECK(scattered({0, 1, 0, 1}) == "0, 2");
  CHECK(scattered({0, 0, 2, 3, 2, 3}) == "2, 4");
  CHECK(scattered({0, 1, 1, 0}) == "0, 3");
}

TEST_CASE("launchers are known by their variables, the innermost first") {
  {
    const LaunchEnvironment nothing{};
    CHECK_FALSE(detect_launch().parallel());
  }
  {
    const LaunchEnvironment open_mpi{{"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"PMI_SIZE", "2"},
                                     {"PMIX_RANK", "3"},
                                     {"SLURM_STEP_NUM_TASKS", "1"}};
    CHECK(detect_launch().variable == "OMPI_COMM_WORLD_SIZE");
    CHECK(detect_launch().processes == 4);
  }
  {
    const LaunchEnvironment mpich{{"PMI_SIZE", "2"}};
    CHECK(detect_launch().processes == 2);
  }
  {
    const LaunchEnvironment slurm{{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "16"}};
    CHECK(detect_launch().variable == "PMIX_RANK");
    CHECK(detect_launch().processes == 16);
  }
  {
    const LaunchEnvironment silent{{"PMIX_RANK", "0"}};
    CHECK(detect_launch().parallel());
    CHECK(detect_launch().processes == Launch::kUnknown);
  }
  for (const char* bad : {"", "four", "0", "-1", "2x", "99999999999"}) {
    INFO(bad);
    const LaunchEnvironment damaged{{"OMPI_COMM_WORLD_SIZE", bad}};
    CHECK_THROWS_AS(detect_launch(), Error);
  }
}

TEST_CASE("a program that is started alone is left none of a launcher's variables") {
  std::vector<std::string> before;
  for (char** variable = environ; *variable != nullptr; ++variable) before.emplace_back(*variable);
  {
    const LaunchEnvironment launched{
        {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMI_SIZE", "2"}, {"PMIX_RANK", "0"}};
    setenv("OMPI_MCA_ess_base_vpid", "0", 1);
    setenv("MY_PMI_SIZE", "3", 1);
    leave_launch();
    CHECK_FALSE(detect_launch().parallel());
    CHECK(std::getenv("OMPI_MCA_ess_base_vpid") == nullptr);
    CHECK(std::getenv("MY_PMI_SIZE") != nullptr);
    CHECK(std::getenv("PATH") != nullptr);
  }
  unsetenv("MY_PMI_SIZE");
  for (const std::string& variable : before) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
}

TEST_CASE("without MPI, only one process may have been launched") {
  CHECK_NOTHROW(require_single_process({}));
  CHECK_NOTHROW(require_single_process({"PMI_SIZE", 1}));
  CHECK_THROWS_AS(require_single_process({"PMI_SIZE", 2}), Error);
  CHECK_THROWS_AS(require_single_process({"PMIX_RANK", Launch::kUnknown}), Error);
}

TEST_CASE("processes that were launched together but do not see each other are refused") {
  CHECK_NOTHROW(require_connected({"OMPI_COMM_WORLD_SIZE", 4}, 4));
  CHECK_NOTHROW(require_connected({"PMIX_RANK", Launch::kUnknown}, 4));
  CHECK_THROWS_AS(require_connected({"OMPI_COMM_WORLD_SIZE", 4}, 1), Error);
}

}  // namespace
}  // namespace bamtrain
