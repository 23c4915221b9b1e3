#include "train/resume.h"

#include <filesystem>

#include "train/run_files.h"

namespace bamtrain {

std::optional<Checkpoint> find_checkpoint(const RunConfig& c, const Warn& warn) {
  namespace fs = std::filesystem;
  const auto newest_in_out_dir = [&] {
    std::optional<Checkpoint> newest = newest_checkpoint(c.out_dir, warn);
    if (newest) check_run_state(*newest);
    return newest;
  };
  if (c.checkpoint.resume == "auto") return newest_in_out_dir();
  if (c.checkpoint.resume == "never") {
    if (fs::exists(c.out_dir) && !fs::is_empty(c.out_dir)) {
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
  if (!newest || fs::equivalent(newest->folder, start.folder)) return start;
  if (newest->state.value(kStartedFrom, "") == fs::canonical(start.folder)) return newest;
  throw Error(ExitCode::config, "checkpoint.resume",
              "an out_dir without checkpoints of another run or of later steps",
              start.folder + " to resume from and " + newest->folder + " in out_dir",
              "choose another out_dir, or move the later checkpoints elsewhere");
}

std::string started_from(const RunConfig& c, const Checkpoint& checkpoint) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::canonical(checkpoint.folder);
  if (fs::exists(c.out_dir) && fs::equivalent(folder.parent_path(), c.out_dir)) {
    return checkpoint.state.value(kStartedFrom, "");
  }
  return folder;
}

}  // namespace bamtrain
