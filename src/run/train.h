#pragma once
// The training loop: data, model, optimizer, checkpoints, on any backend and number of processes.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/folder_lock.h"
#include "dist/communicator.h"
#include "model/model.h"
#include "run/task_measures.h"
#include "train/run_config.h"

namespace bamtrain {

struct TrainRun {
  RunConfig config;
  nlohmann::json resolved;  // the config as stored with every checkpoint
  std::string config_file;  // the text of config.json, which trains the same run
  bool has_device = true;   // false: planned for a GPU that this machine lacks
  std::string gpu;          // for starts.json, as in RunStart of record/provenance.h
  std::map<std::string, std::string> libraries;
  /// The keys that must equal a checkpoint's config, but differ in `resolved`.
  std::function<std::vector<std::string>(const nlohmann::json& before)> refused_keys;
  /// Generates the lines of samples.jsonl for a step from master weights in host memory, which it
  /// does not change. Used on rank 0, if config.sample has prompts.
  std::function<std::vector<nlohmann::ordered_json>(int64_t step, const Tensor& master_weights)>
      samples;
  /// The evaluations of config.eval.tasks, or null; outlives the run.
  const TaskMeasures* tasks = nullptr;
  /// Makes another backend on the same device, since the training backend has its scratch in the
  /// steps' memory. Set if config.eval.tasks has an entry that is measured during training.
  std::function<std::unique_ptr<Backend>()> beside = {};
  int64_t sample_bytes = 0;  // host memory that sampling takes in addition
  int64_t report_bytes = 0;  // host memory that `validated` takes, on rank 0
  std::string last_result;   // the file that the final evaluation writes; empty: none
  /// Called on rank 0 when the line of a validation pass, or of the last step, is in metrics.jsonl.
  /// Messages to `warn` are printed. Must not throw. May be empty.
  std::function<void(const Warn& warn)> validated = {};
};

struct TrainResult {
  bool interrupted = false;  // stopped by a signal or the trigger file
  int64_t step = 0;          // steps done; if any, they are saved in `checkpoint`
  std::string checkpoint;    // folder of the last checkpoint
  std::string best;          // folder of the checkpoint.best checkpoint, on rank 0; empty: none
  /// The lock of out_dir, on rank 0, held as long as the run writes there. Null if the run was
  /// stopped before it had a folder.
  std::unique_ptr<FolderLock> lock = {};
};

/// Attention FLOPs per trained token: six products of 2 D FLOPs for each pair of a query and a key
/// that it sees, in every head and layer. Keys past the window are not counted. Keys of other
/// documents are, since document lengths depend on the data.
double attention_flops_per_token(const ModelConfig& config, int64_t T);
/// Attention FLOPs plus 6 per matrix parameter (2 forward, 4 backward). The embedding is looked up;
/// the head is multiplied.
double flops_per_token(const ModelConfig& config, const ParameterLayout& layout, int64_t T);

/// Prints what --dry-run promises: parameters, tokens per step, FLOPs per token, memory, time, and
/// the number of epochs. Checks what the run would resume from or begin with, including digests.
/// Opens the data last, so that errors in them come after everything that does not need them.
/// Memory that does not fit, and a precision that the processor cannot multiply in
/// (ExitCode::device), are also thrown at the end. Starts no training.
void dry_run(const TrainRun& run, Backend& backend, int processes);

/// Trains from the newest checkpoint (checkpoint.resume) or from the start, to train.stop_at or
/// train.steps. Looks at out_dir only while no other run can be there. Signals end the process
/// until the first step begins; after that, the run stops after the current step (run/signals.h).
/// Collective: every process calls it with the same run. An Error that all of them find is thrown
/// on rank 0 only (dist/collective.h). Throws Error: config, data, checkpoint, io, and
/// ExitCode::nonfinite, which leaves the newest checkpoint intact.
TrainResult train(const TrainRun& run, Communicator& comm, Backend& backend);

}  // namespace bamtrain
