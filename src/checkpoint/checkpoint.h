#pragma once
// Checkpoints: OUT/checkpoint-00001234/ with
//
//   model.safetensors      the parameters
//   optimizer.safetensors  the optimizer's state
//   state.json             everything else a run needs to continue, with "format" and "step"
//   manifest.json          size and SHA-256 of the other three, written last
//
// A folder of that name is complete from the moment it has it: it is written under another name
// beside it, every file put on the disk, and then renamed. Names in OUT that begin with a dot are
// leftovers of a process that died: `.tmp-...` is of no use to anyone, `.replaced-...` was valid
// and is taken back where its successor did not arrive.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace bamtrain {

/// The newest checkpoint format read, and the one written.
inline constexpr int64_t kCheckpointFormat = 1;

/// Told, as one sentence each, what a run can go on without but its user should know.
using Warn = std::function<void(const std::string&)>;

struct CheckpointContents {
  std::vector<NamedTensor> model;
  std::vector<NamedTensor> optimizer;
  nlohmann::json state;  // an object; "format" and "step" are added and need not be there
};

/// A checkpoint whose files were all as the manifest says when it was opened.
struct Checkpoint {
  std::string folder;
  int64_t step = 0;
  nlohmann::json state;

  std::string model_file() const { return folder + "/model.safetensors"; }
  std::string optimizer_file() const { return folder + "/optimizer.safetensors"; }
};

/// An intact checkpoint of a format later than kCheckpointFormat.
struct NewerFormat : Error {
  NewerFormat(const std::string& where, int64_t found);
};

/// "checkpoint-00001234"; more digits where eight do not suffice.
std::string checkpoint_name(int64_t step);
/// The step of such a name, none for any other.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// Saves `contents` as OUT/checkpoint-STEP, replacing one of the same step; on return it is on the
/// disk. Error (ExitCode::io) naming path, reason and remedy: the temporary folder is then removed,
/// every earlier checkpoint is intact, and the new one is there whole or not at all. The process
/// may die at any point: `newest_checkpoint` then finds the earlier one or this one, whole. Calls
/// `remove_leftovers` first. REQUIRES: `out_dir` is a folder, no other process writes checkpoints
/// to it, step >= 0, all of the state representable in JSON (no NaN, no infinity).
void save_checkpoint(const std::string& out_dir, int64_t step, const CheckpointContents& contents,
                     const Warn& warn);

/// Verifies size and SHA-256 of every file, then reads the state. Files that the manifest does not
/// list are none of its business. Error (ExitCode::checkpoint) naming the file: missing, truncated,
/// damaged, of a newer format, or in a folder named for another step; (ExitCode::io) one that the
/// system cannot read now. A run's folder is refused with the name of its newest checkpoint.
Checkpoint open_checkpoint(const std::string& folder);

/// state.json of a checkpoint by its folder, whose own size and SHA-256 are verified, not those of
/// the weights. Error (ExitCode::checkpoint) as open_checkpoint; (ExitCode::io) likewise.
nlohmann::json verified_state(const std::string& folder);

/// The newest checkpoint in `out_dir` by step; none where there is none or no such folder. Each
/// damaged one is named in a call of `warn` and the one before it is used. Error
/// (ExitCode::checkpoint) where all are damaged, or one of a newer format is reached: starting
/// afresh or further back is then the user's decision; (ExitCode::io) where the folder, or a
/// checkpoint that may be good, cannot be read now. Changes nothing, so that any process may call
/// it at any time.
std::optional<Checkpoint> newest_checkpoint(const std::string& out_dir, const Warn& warn);

/// The step of the newest folder in `folder` that is named as a checkpoint is, good or damaged;
/// none where there is none. Error (ExitCode::io) where the folder cannot be read.
std::optional<int64_t> newest_step(const std::string& folder);

/// state.json of that checkpoint, by its path: for a picture or a plan, which are not worth reading
/// a model of gigabytes for, so that no digest is verified. Error (ExitCode::checkpoint), with
/// `remedy`, where it is missing or no JSON.
struct UnverifiedState {
  std::string path;
  nlohmann::json state;
};
std::optional<UnverifiedState> newest_state(const std::string& folder, const std::string& remedy);

/// Whether `out_dir` has a folder named as the checkpoint of `step`, good or damaged. Error
/// (ExitCode::io) where that cannot be read.
bool has_checkpoint(const std::string& out_dir, int64_t step);

/// The name of the newest folder in `out_dir` that is named as a checkpoint before `step` is.
std::optional<std::string> checkpoint_before(const std::string& out_dir, int64_t step);

/// Removes what a process that died while saving or pruning has left; what cannot be removed is
/// named in a call of `warn` and left for the next time. Error (ExitCode::io) where the folder
/// cannot be listed, or a checkpoint that was set aside cannot be taken back.
/// REQUIRES: no other process writes checkpoints to `out_dir`.
void remove_leftovers(const std::string& out_dir, const Warn& warn);

/// Removes every checkpoint but the newest `keep`, those whose step divides by `keep_every` (0:
/// none), that of step `best` and the newest valid one; to find that one, the newest are read back
/// in full wherever there is something to remove. Damaged ones are named in calls of `warn`; where
/// all are, Error (ExitCode::checkpoint) and nothing is removed. What the system does not let it
/// read or remove is named too, and left for the next time. Calls `remove_leftovers` first.
/// REQUIRES: keep >= 1, keep_every >= 0, no other process writes checkpoints to `out_dir`.
void prune_checkpoints(const std::string& out_dir, int64_t keep, int64_t keep_every,
                       std::optional<int64_t> best, const Warn& warn);

}  // namespace bamtrain
