#pragma once
// Checkpoints: OUT/checkpoint-00001234/ with
//
//   model.safetensors      the parameters
//   optimizer.safetensors  the optimizer's state
//   state.json             everything else a run needs to continue, with "format" and "step"
//   manifest.json          size and SHA-256 of the other three, written last
//
// A folder with that name is always complete: it is written under another name next to it, every
// file is synced to disk, and then it is renamed. Names in OUT that begin with a dot are leftovers
// of a process that died: `.tmp-...` is useless, `.replaced-...` was valid and is restored if its
// successor is missing.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace bamtrain {

/// The newest checkpoint format that can be read, and the one written.
inline constexpr int64_t kCheckpointFormat = 1;

/// Called with one sentence about a problem that the run survives but its user should know.
using Warn = std::function<void(const std::string&)>;

struct CheckpointContents {
  std::vector<NamedTensor> model;
  std::vector<NamedTensor> optimizer;
  nlohmann::json state;  // an object; "format" and "step" are added and may be missing
};

/// A checkpoint whose files all matched the manifest when it was opened.
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

/// "checkpoint-00001234"; more digits if eight do not suffice.
std::string checkpoint_name(int64_t step);
/// The step in such a name; nullopt for any other name.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// Saves `contents` as OUT/checkpoint-STEP, replacing one of the same step. On return it is on
/// disk. Throws Error (ExitCode::io) with path, reason and remedy. The temporary folder is then
/// removed, every earlier checkpoint is intact, and the new one is either complete or missing. If
/// the process dies at any point, `newest_checkpoint` finds the earlier or this one, complete.
/// Calls `remove_leftovers` first. REQUIRES: `out_dir` is a folder, no other process writes
/// checkpoints to it, step >= 0, the whole state is representable in JSON (no NaN, no infinity).
void save_checkpoint(const std::string& out_dir, int64_t step, const CheckpointContents& contents,
                     const Warn& warn);

// Several processes that see one folder save it together, with the same bytes and promises: one
// begins, then all write their parts, then that one ends, or abandons it where a part failed.

/// word_sum() of what was written to the model's and the optimizer's file. Those of all parts add
/// up.
struct CheckpointSums {
  uint64_t model = 0, optimizer = 0;

  bool operator==(const CheckpointSums&) const = default;
};

/// `contents`: the same on all processes, but `state`, which is that of the one that ends. The
/// tensors' memory may be missing.
CheckpointSums begin_checkpoint(const std::string& out_dir, int64_t step,
                                const CheckpointContents& contents, const Warn& warn);
/// `write` gives the files the values of this process, each element that of one process.
struct CheckpointPart {
  SafetensorsPart model, optimizer;
};
CheckpointSums write_part(const std::string& out_dir, int64_t step,
                          const CheckpointContents& contents,
                          const std::function<void(CheckpointPart&)>& write);
/// Reads the files back. Returns false, and abandons the checkpoint, if they have other bytes than
/// those of `sums`, of all parts and the beginning: then they are in no file system that several
/// processes can write to.
bool end_checkpoint(const std::string& out_dir, int64_t step, const CheckpointContents& contents,
                    const CheckpointSums& sums);
/// Removes what was written. What cannot be removed is left for the next save.
void abandon_checkpoint(const std::string& out_dir, int64_t step);

/// Verifies size and SHA-256 of every file, then reads the state. Ignores files that the manifest
/// does not list. Throws Error (ExitCode::checkpoint) naming a file that is missing, truncated,
/// damaged, of a newer format, or in a folder named for another step; (ExitCode::io) for one that
/// the system cannot read now. Refuses a run's folder, naming its newest checkpoint.
Checkpoint open_checkpoint(const std::string& folder);

/// state.json of the checkpoint in `folder`. Verifies its own size and SHA-256, not those of the
/// weights. Errors as open_checkpoint.
nlohmann::json verified_state(const std::string& folder);

/// The newest checkpoint in `out_dir` by step; nullopt if there is none or no such folder. Skips
/// damaged ones and names each in a call of `warn`. Throws Error (ExitCode::checkpoint) if all are
/// damaged or one of a newer format is reached: the user must decide whether to start over or from
/// an earlier one. Throws Error (ExitCode::io) if the folder, or a checkpoint that may be valid,
/// cannot be read now. Changes nothing, so any process may call it at any time.
std::optional<Checkpoint> newest_checkpoint(const std::string& out_dir, const Warn& warn);

/// The step of the newest folder in `folder` with a checkpoint's name, valid or damaged; nullopt if
/// there is none. Throws Error (ExitCode::io) if the folder cannot be read.
std::optional<int64_t> newest_step(const std::string& folder);

/// state.json of that checkpoint, and its path. For a chart or a plan, where reading a model of
/// gigabytes is not worthwhile, so no digest is verified. Throws Error (ExitCode::checkpoint), with
/// `remedy`, if it is missing or not JSON.
struct UnverifiedState {
  std::string path;
  nlohmann::json state;
};
std::optional<UnverifiedState> newest_state(const std::string& folder, const std::string& remedy);

/// Whether `out_dir` has a folder named as the checkpoint of `step`, valid or damaged. Throws Error
/// (ExitCode::io) if `out_dir` cannot be read.
bool has_checkpoint(const std::string& out_dir, int64_t step);

/// The name of the newest folder in `out_dir` that is named as a checkpoint of an earlier step.
std::optional<std::string> checkpoint_before(const std::string& out_dir, int64_t step);

/// Removes what a process left that died while saving or pruning. What cannot be removed is named
/// in a call of `warn` and left for the next time. Throws Error (ExitCode::io) if the folder cannot
/// be listed, or a replaced checkpoint cannot be restored.
/// REQUIRES: no other process writes checkpoints to `out_dir`.
void remove_leftovers(const std::string& out_dir, const Warn& warn);

/// Removes every checkpoint except the newest `keep`, those whose step is a multiple of
/// `keep_every` (0: none), that of step `best`, and the newest valid one. To find that one, it
/// reads the newest back in full whenever there is something to remove, unless that is
/// `read_back`, of which it has been done already. Damaged ones are named in
/// calls of `warn`. If all are damaged, throws Error (ExitCode::checkpoint) and removes nothing.
/// What cannot be read or removed is named too, and left for the next time. Calls
/// `remove_leftovers` first.
/// REQUIRES: keep >= 1, keep_every >= 0, no other process writes checkpoints to `out_dir`.
void prune_checkpoints(const std::string& out_dir, int64_t keep, int64_t keep_every,
                       std::optional<int64_t> best, const Warn& warn,
                       std::optional<int64_t> read_back = std::nullopt);

}  // namespace bamtrain
