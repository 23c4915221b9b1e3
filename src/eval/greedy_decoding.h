#pragma once
// Batched greedy decoding.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/task_scores.h"

namespace bamtrain {

struct GreedyDecodingLimits {
  int64_t most = 1;           // tokens of each, 1 at least
  int64_t ids = 0;            // those below are written, 1 to the model's vocabulary
  std::vector<int32_t> ends;  // before which a text ends
};

/// Of each prompt what follows it, in their order. Prompts of similar lengths are read and
/// continued side by side, padded from the left, which none of them sees: what else is asked
/// changes the last bits of logits at most, where the backend's products round by how many rows
/// they have; not in fp64. Of equally likely tokens the smallest id is written. Memory is planned
/// once, for the longest. Processes share the batches: collective, the same for every number of
/// them. `document_start`: as Model::append's. Error (ExitCode::nonfinite) where a logit of an id
/// that may be written is NaN or none is finite. REQUIRES: prompts that are not empty; a model that
/// supports incremental decoding (check_incremental_decoding), as long as the longest prompt and
/// most - 1 (Network::check_length).
std::vector<std::vector<int32_t>> greedy_decode(std::span<const std::vector<int32_t>> prompts,
                                                const GreedyDecodingLimits& limits,
                                                const ScoredModel& model,
                                                std::optional<int64_t> document_start,
                                                const TaskShare& share,
                                                const TaskProgress& progress);

/// Memory that it takes beside the master weights for `prompts` of them, the longest of `longest`
/// ids, and `most` tokens behind each.
int64_t greedy_decode_bytes(int64_t longest, int64_t prompts, int64_t most,
                            const ScoredModel& model);

}  // namespace bamtrain
