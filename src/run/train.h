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
  nlohmann::json resolved;  // the config as it is stored with every checkpoint
  bool has_device = true;   // false: it is planned for a GPU that is not here
  std::string gpu;          // for starts.json, as RunStart's in record/provenance.h
  std::map<std::string, std::string> libraries;
  /// The keys in which `resolved` differs from a checkpoint's config and must not.
  std::function<std::vector<std::string>(const nlohmann::json& before)> refused_keys;
  /// The lines of samples.jsonl for a step, from master weights in host memory, which it leaves as
  /// they are; on rank 0, where config.sample has prompts.
  std::function<std::vector<nlohmann::ordered_json>(int64_t step, const Tensor& master_weights)>
      samples;
  /// What config.eval.tasks asks for, if anything; outlives the run.
  const TaskMeasures* tasks = nullptr;
  /// Another backend on the same device: the steps' has its scratch in their memory. Where
  /// config.eval.tasks has an entry that is measured while the run trains.
  std::function<std::unique_ptr<Backend>()> beside = {};
  int64_t sample_bytes = 0;  // host memory that it takes meanwhile
  int64_t report_bytes = 0;  // host memory that `validated` takes, on rank 0
  std::string last_result;   // the file that the evaluation at the end writes; empty: none
  /// Called on rank 0 when the line of a validation pass, or of the last step, is in metrics.jsonl;
  /// what it tells `warn` is printed. Must not throw. May be empty.
  std::function<void(const Warn& warn)> validated = {};
};

struct TrainResult {
  bool interrupted = false;  // stopped by a signal or the trigger file
  int64_t step = 0;          // steps done, saved in `checkpoint` where there are any
  std::string checkpoint;    // the last one's folder
  std::string best;          // that of checkpoint.best, on rank 0; empty: none
  /// Of out_dir, on rank 0: for as long as the run goes on writing there. None where it was stopped
  /// before it had a folder.
  std::unique_ptr<FolderLock> lock = {};
};

/// Floating-point operations of attention per trained token: six products of 2 D for each pair of a
/// query and a key that it sees, in every head and layer. Keys past the window are not counted;
/// those of other documents are, whose lengths are the data's.
double attention_flops_per_token(const ModelConfig& config, int64_t T);
/// Those, and 6 per matrix parameter (2 forward, 4 backward; the embedding is looked up, the head
/// multiplied).
double flops_per_token(const ModelConfig& config, const ParameterLayout& layout, int64_t T);

/// Prints what --dry-run promises: parameters, tokens per step, FLOPs per token, memory, time, and
/// how often the data are seen. Checks what the run would go on from or begin with, digests too.
/// Opens the data last, so that errors in it show behind all that does not need it; memory that
/// does not fit and a precision that the processor does not multiply in (ExitCode::device) are
/// Errors at the end too. Starts nothing.
void dry_run(const TrainRun& run, Backend& backend, int processes);

/// Trains from the newest checkpoint (checkpoint.resume) or from the start, to train.stop_at or
/// train.steps. What it finds in out_dir it looks for while no other run can be there. Signals end
/// the process until the first step begins, and are then obeyed after the step at hand
/// (run/signals.h). Collective: every process calls it with the same run; an Error that all meet
/// alike is thrown on rank 0 alone (dist/collective.h). Errors: config, data, checkpoint, io, and
/// ExitCode::nonfinite, which leaves the newest checkpoint intact.
TrainResult train(const TrainRun& run, Communicator& comm, Backend& backend);

}  // namespace bamtrain
