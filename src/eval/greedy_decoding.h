#pragma once
// Batched greedy decoding.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/task_scores.h"

namespace bamtrain {

struct GreedyDecodingLimits {
  int64_t most = 1;           // most tokens per text, at least 1
  int64_t ids = 0;            // only ids below are generated; 1 to the model's vocabulary
  std::vector<int32_t> ends;  // ids that end a text, not included in it
};

/// Returns the continuation of each prompt, in order. Prompts of similar lengths are batched, with
/// masked left padding. Other prompts can change only the last bits of logits, where the backend's
/// matmul rounding depends on the number of rows; not in fp64. Ties go to the smallest id. Memory
/// is planned once, for the longest prompt. Processes share the batches: collective, with the same
/// result for any number of processes. `document_start`: as for Model::append. Throws Error
/// (ExitCode::nonfinite) if a logit of an allowed id is NaN or no logit is finite. REQUIRES:
/// non-empty prompts; a model that supports incremental decoding (check_incremental_decoding) of
/// length longest prompt + most - 1 (Network::check_length).
std::vector<std::vector<int32_t>> greedy_decode(std::span<const std::vector<int32_t>> prompts,
                                                const GreedyDecodingLimits& limits,
                                                const ScoredModel& model,
                                                std::optional<int64_t> document_start,
                                                const TaskShare& share,
                                                const TaskProgress& progress);

/// Memory used in addition to the master weights, for `prompts` prompts of up to `longest` ids and
/// `most` new tokens each.
int64_t greedy_decode_bytes(int64_t longest, int64_t prompts, int64_t most,
                            const ScoredModel& model);

}  // namespace bamtrain
