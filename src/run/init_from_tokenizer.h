#pragma once
// Checks that the weights of a new run were trained with the token ids of its shards.

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// Compares the SHA-256 of the tokenizer of init_from.folder with that of the training shards. A
/// checkpoint has it in state.json, other folders in the tokenizer's files. Warns if the shards
/// name their tokenizer and the folder does not. Exports made before tokenizer_config.json had the
/// digest have it in the model card; without a card, the numbers of ids are compared. Does nothing
/// if init_from.tokenizer is "any". Throws Error (ExitCode::data) for another tokenizer, and as
/// ShardSet::open.
void check_init_from_tokenizer(const RunConfig& config, const Warn& warn);

}  // namespace bamtrain
