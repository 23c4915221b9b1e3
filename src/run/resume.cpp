#include "run/resume.h"

#include <filesystem>

#include "record/run_files.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::error_code& error) {
  throw Error(ExitCode::io, path, "a path that can be looked at", error.message(),
              "check it and its permissions");
}

bool exists(const std::string& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error) refuse(path, error);
  return found;
}

bool is_empty(const std::string& path) {
  std::error_code error;
  const bool empty = fs::is_empty(path, error);
  if (error) refuse(path, error);
  return empty;
}

bool are_same(const std::string& a, const std::string& b) {
  std::error_code error;
  const bool same = fs::equivalent(a, b, error);
  if (error) refuse(a, error);
  return same;
}

fs::path canonical(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  if (error) refuse(path, error);
  return found;
}

}  // namespace

std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& warn) {
  const auto newest_in_out_dir = [&] {
    std::optional<Checkpoint> newest = newest_checkpoint(c.out_dir, warn);
    if (newest) check_run_state(*newest);
    return newest;
  };
  if (c.checkpoint.resume == "auto") return newest_in_out_dir();
  if (c.checkpoint.resume == "never") {
    if (exists(c.out_dir) && !is_empty(c.out_dir)) {
      throw Error(ExitCode::config, "checkpoint.resume",
                  "an empty or absent out_dir, since it is \"never\"", c.out_dir + " with files",
                  "choose another out_dir, empty this one, or resume with \"auto\"");
    }
    return std::nullopt;
  }
  // A folder: the start of this run, unless the run has already gone on from there.
  const Checkpoint start = open_checkpoint(c.checkpoint.resume);
  check_run_state(start);
  const std::optional<Checkpoint> newest = newest_in_out_dir();
  if (!newest || are_same(newest->folder, start.folder)) return start;
  if (newest->state.value(kStartedFrom, "") == canonical(start.folder)) return newest;
  throw Error(ExitCode::config, "checkpoint.resume",
              "an out_dir without checkpoints of another run or of later steps",
              start.folder + " to resume from and " + newest->folder + " in out_dir",
              "choose another out_dir, or move the later checkpoints elsewhere");
}

std::string started_from(const RunConfig& c, const Checkpoint& checkpoint) {
  const fs::path folder = canonical(checkpoint.folder);
  if (exists(c.out_dir) && are_same(folder.parent_path(), c.out_dir)) {
    return checkpoint.state.value(kStartedFrom, "");
  }
  return folder;
}

}  // namespace bamtrain
