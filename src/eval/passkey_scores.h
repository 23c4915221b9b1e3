#pragma once
// Passkey retrieval (prompts/passkey.h), against length and depth.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "eval/task_scores.h"
#include "prompts/passkey.h"

namespace bamtrain {

struct PasskeyRequest {
  int64_t depths = 20;    // at least 2: places of the needle (passkey_place)
  int64_t samples = 1;    // prompts per depth, each with its own key
  uint64_t seed = 0;      // seed of the keys
  bool generate = false;  // decode greedily instead of teacher forcing
  TaskSet set = TaskSet::test;
};

/// The prompts at one length, ordered by depth: pure functions of the seed, the set, the length and
/// their number. Errors as Passkey::fillers.
std::vector<PasskeyPrompt> passkey_prompts(const Passkey& passkey, const PasskeyRequest& request,
                                           int64_t length);

/// Number of ids of the longest text that the model reads: the prompt, the space and the key
/// without its last digit.
int64_t passkey_text(const Passkey& passkey, int64_t length);

/// Returns "tokens", of each prompt without its answer, and the retrieval_row() of two scores.
/// "exact_match" is whether all requested digits are correct, "accuracy" the share that is. A digit
/// is correct if it is the likeliest of all ids: in one pass given the correct digits before it, or
/// with `generate` in greedy decoding. Throws Error (ExitCode::nonfinite) if losses of the digits
/// are not finite. `document_start`: as for Network::evaluate. REQUIRES: as log_likelihoods() or
/// greedy_decode(), for the longest text of the prompts.
nlohmann::ordered_json score_passkey(const Passkey& passkey, const PasskeyRequest& request,
                                     int64_t length, const ScoredModel& model,
                                     std::optional<int64_t> document_start, const TaskShare& share,
                                     const TaskProgress& progress);

/// Memory used in addition to the master weights.
int64_t passkey_scores_bytes(const Passkey& passkey, const PasskeyRequest& request, int64_t length,
                             const ScoredModel& model);

}  // namespace bamtrain
