#include "record/run_data.h"

#include <glob.h>

#include <filesystem>
#include <system_error>

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// Whether a folder or glob of shards matches anything.
bool is_there(const std::string& shards) {
  std::error_code ignored;
  if (fs::exists(shards, ignored)) return true;
  glob_t matches{};
  const bool found = ::glob(shards.c_str(), GLOB_NOSORT, nullptr, &matches) == 0;
  ::globfree(&matches);
  return found;
}

/// The path that is to run_folder as `shards` is to out_dir; empty if there is none.
std::string beside_run(const std::string& shards, const std::string& out_dir,
                       const std::string& run_folder) {
  const fs::path way =
      fs::path(shards).lexically_normal().lexically_relative(fs::path(out_dir).lexically_normal());
  return way.empty() ? "" : (fs::path(run_folder) / way).lexically_normal().string();
}

}  // namespace

std::string run_folder(const Checkpoint& checkpoint) {
  return (fs::absolute(checkpoint.folder).lexically_normal() / "")
      .parent_path()
      .parent_path()
      .string();
}

std::vector<MovedPath> find_run_data(RunConfig* config, const std::string& run_folder) {
  std::vector<MovedPath> moved;
  const auto find = [&](const std::string& key, std::string* path) {
    if (path->empty() || is_there(*path)) return;
    const std::string now = beside_run(*path, config->out_dir, run_folder);
    if (now.empty() || !is_there(now)) return;
    moved.push_back({key, *path, now});
    *path = now;
  };
  for (DataSource& source : config->data.train.list) find("data.train", &source.path);
  find("data.val", &config->data.val);
  return moved;
}

}  // namespace bamtrain
