#include "dist/launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace bamtrain {
namespace {

int parse_count(const char* variable, const std::string& text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 1) {
    throw Error(ExitCode::distributed, std::string("environment variable ") + variable,
                "a number of processes", "\"" + text + "\"",
                "unset it, or use the mpirun of the MPI library that bamtrain was built with");
  }
  return count;
}

std::string announced(const Launch& launch) {
  return launch.processes == Launch::kUnknown ? "an unknown number of processes"
                                              : std::to_string(launch.processes) + " processes";
}

}  // namespace

Launch detect_launch() {
  // The launcher's own variable comes first. Under srun, processes of mpirun inherit srun's
  // variables, which then count something else.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* text = std::getenv(variable)) return {variable, parse_count(variable, text)};
  }
  if (std::getenv("PMIX_RANK") != nullptr) {
    const char* text = std::getenv("SLURM_STEP_NUM_TASKS");
    return {"PMIX_RANK", text ? parse_count("SLURM_STEP_NUM_TASKS", text) : Launch::kUnknown};
  }
  return {};
}

void leave_launch() {
  // Open MPI, PMIx and PRRTE; MPICH, Intel MPI and their launcher Hydra.
  constexpr std::string_view kPrefixes[] = {"OMPI_", "ORTE_",  "PMIX_", "PRTE_",    "PMI_",
                                            "PMI2_", "HYDRA_", "HYDI_", "MPI_LOCAL"};
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                    [&](std::string_view prefix) { return name.starts_with(prefix); })) {
      names.emplace_back(name);
    }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

void require_single_process(const Launch& launch) {
  if (!launch.parallel() || launch.processes == 1) return;
  throw Error(ExitCode::distributed, "process launch (" + launch.variable + ")",
              "one process, because this bamtrain was built without MPI", announced(launch),
              "build with -Dmpi=enabled, or start bamtrain without the launcher");
}

void require_connected(const Launch& launch, int connected) {
  if (launch.processes == Launch::kUnknown || launch.processes == connected) return;
  throw Error(ExitCode::distributed, "process launch (" + launch.variable + ")",
              announced(launch) + " connected by MPI", std::to_string(connected),
              "use the mpirun of the MPI library that bamtrain was built with");
}

}  // namespace bamtrain
