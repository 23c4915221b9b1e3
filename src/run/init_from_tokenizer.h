#pragma once
// Whether the weights that a run begins with know the ids of its shards.

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// Compares the tokenizer of init_from.folder, by its SHA-256, with that of the training shards: a
/// checkpoint's by its state.json, another folder's by its tokenizer's files. Where the shards tell
/// theirs and the folder does not, `warn` is told. An export of before tokenizer_config.json had
/// the digest has it in its model card; without that the numbers of ids are compared. Nothing with
/// init_from.tokenizer "any". Error (ExitCode::data): another tokenizer; as ShardSet::open.
void check_init_from_tokenizer(const RunConfig& config, const Warn& warn);

}  // namespace bamtrain
