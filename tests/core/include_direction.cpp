// Includes go one way (see src/meson.build). This test reads every source file and checks them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace {

namespace fs = std::filesystem;

/// What each folder of src may include, besides its own files.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"core", {}},
    {"priors", {"core"}},
    {"scales", {"core", "priors"}},
    {"normalizers", {"core"}},
    {"mixes", {"core"}},
    // device.cuh includes the engine when no nvcc compiles it.
    {"kernels", {"core", "priors", "scales", "normalizers", "mixes", "engine"}},
    {"ops", {"core", "priors", "scales", "normalizers", "mixes", "kernels"}},
    {"model", {"core", "priors", "scales", "normalizers", "mixes", "ops"}},
    {"dist", {"core"}},
    {"data", {"core", "tasks"}},
    {"tasks", {"core"}},
    {"prompts", {"core", "data", "tasks"}},
    {"checkpoint", {"core"}},
    {"train",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "dist", "data", "tasks",
      "prompts", "checkpoint"}},
    {"record",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "dist", "data", "tasks",
      "checkpoint", "train"}},
    {"run",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "dist", "data", "tasks",
      "checkpoint", "train", "record", "eval"}},
    {"eval",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "dist", "data", "tasks",
      "prompts", "checkpoint"}},
    {"export",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "data", "tasks",
      "checkpoint", "train", "record"}},
    {"report", {"core", "priors", "scales", "normalizers", "mixes", "model", "record"}},
    {"inspect",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "checkpoint", "report"}},
    // Only structs and registries, but of everything that a config can name.
    {"config",
     {"core", "priors", "scales", "normalizers", "mixes", "ops", "model", "data", "tasks",
      "train"}},
    // Each run is a separate process, so this folder does not depend on what a run does.
    {"study", {"core", "dist", "checkpoint", "train", "record", "report", "config"}},
    {"commands", {"core", "priors", "scales", "normalizers", "mixes",      "ops",   "model",
                  "dist", "data",   "tasks",  "prompts",     "checkpoint", "train", "record",
                  "run",  "eval",   "report", "export",      "config",     "study", "inspect"}},
};

}  // namespace

TEST_CASE("includes follow the direction of the design") {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  const fs::path root = fs::path(source) / "src", kernels = fs::path(source) / "kernels";
  const std::regex include("^\\s*#\\s*include\\s*\"([a-z0-9_]+)/");
  int files = 0, includes = 0;
  std::vector<fs::directory_entry> entries;
  for (const fs::path& top : {root, kernels}) {
    for (const auto& entry : fs::recursive_directory_iterator(top)) entries.push_back(entry);
  }
  for (const fs::directory_entry& entry : entries) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cuh" && extension != ".cu") {
      continue;
    }
    const bool of_src = entry.path().string().rfind(root.string(), 0) == 0;
    const std::string folder =
        of_src ? fs::relative(entry.path(), root).begin()->string() : std::string("kernels");
    if (folder == "main.cpp") continue;  // may include everything
    INFO(entry.path().string());
    REQUIRE(kAllowed.count(folder) == 1);
    ++files;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      ++includes;
      INFO(line);
      const std::string target = match[1];
      CHECK((target == folder || kAllowed.at(folder).count(target) == 1));
    }
  }
  CHECK(files > 50);
  CHECK(includes > 100);
}
