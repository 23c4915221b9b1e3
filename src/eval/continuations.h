#pragma once
// What a model writes behind prompts, always the likeliest token: many texts at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/task_scores.h"

namespace bamtrain {

struct ContinuationLimits {
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
/// knows texts that grow (check_grows), as long as the longest prompt and most - 1
/// (Network::check_length).
std::vector<std::vector<int32_t>> continuations(std::span<const std::vector<int32_t>> prompts,
                                                const ContinuationLimits& limits,
                                                const ScoredModel& model,
                                                std::optional<int64_t> document_start,
                                                const TaskShare& share,
                                                const TaskProgress& progress);

/// Memory that it takes beside the masters for `prompts` of them, the longest of `longest` ids, and
/// `most` tokens behind each.
int64_t continuations_bytes(int64_t longest, int64_t prompts, int64_t most,
                            const ScoredModel& model);

}  // namespace bamtrain
