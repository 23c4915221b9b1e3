// Only in builds without MPI.

#include "catch.h"
#include "core/error.h"
#include "dist/communicator.h"
#include "launch_environment.h"

namespace bamtrain {
namespace {

TEST_CASE("a binary without MPI refuses to be one of several processes") {
  {
    const LaunchEnvironment four{{"OMPI_COMM_WORLD_SIZE", "4"}};
    try {
      make_communicator();
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::distributed);
      CHECK(std::string(e.what()).find("4 processes") != std::string::npos);
    }
  }
  const LaunchEnvironment one{{"OMPI_COMM_WORLD_SIZE", "1"}};
  CHECK(make_communicator()->size() == 1);
}

}  // namespace
}  // namespace bamtrain
