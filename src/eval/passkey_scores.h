#pragma once
// Passkeys that a model finds (prompts/passkey.h), against length and depth.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "eval/task_scores.h"
#include "prompts/passkey.h"

namespace bamtrain {

struct PasskeyRequest {
  int64_t depths = 20;    // 2 at least: places of the needle, as passkey_place() has them
  int64_t samples = 1;    // prompts at each, a key of its own in every one
  uint64_t seed = 0;      // of the keys
  bool generate = false;  // the model writes the digits, each behind its own before it
  TaskSet set = TaskSet::test;
};

/// The prompts at one length, those of a depth one behind the other: functions of the seed, the
/// set, the length and their number. Errors as Passkey::fillers.
std::vector<PasskeyPrompt> passkey_prompts(const Passkey& passkey, const PasskeyRequest& request,
                                           int64_t length);

/// Ids of the longest text that the model reads: the prompt, the space and the key but its last
/// digit.
int64_t passkey_text(const Passkey& passkey, int64_t length);

/// "tokens", of each prompt without its answer, and the retrieval_row() of "exact_match", whether
/// all digits that are asked for are right, and of "accuracy", the share of them that are. Right is
/// the likeliest of all ids, in one pass behind the right digits before it; with `generate` what
/// the model writes, digit by digit. Error (ExitCode::nonfinite) where the losses of the digits are
/// no numbers. `document_start`: as Network::evaluate's. REQUIRES: as log_likelihoods(), or as
/// greedy_decode(); of the prompts' longest text.
nlohmann::ordered_json score_passkey(const Passkey& passkey, const PasskeyRequest& request,
                                     int64_t length, const ScoredModel& model,
                                     std::optional<int64_t> document_start, const TaskShare& share,
                                     const TaskProgress& progress);

/// Memory that it takes beside the master weights.
int64_t passkey_scores_bytes(const Passkey& passkey, const PasskeyRequest& request, int64_t length,
                             const ScoredModel& model);

}  // namespace bamtrain
