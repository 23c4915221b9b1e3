#pragma once
// The tokenizer's file in a run's folder, from which the commands after the run read it.

#include <string>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// Copies the file of the tokenizer with this SHA-256, which made the run's training shards, to
/// out_dir under its own name (tokenizer_path finds it). Does nothing if a file there has that
/// SHA-256. Warns if there is no such file: training does not need it. Throws Error (data) if a run
/// writes a file of that name itself; other errors: as TokenizerFile. REQUIRES: out_dir is a
/// folder.
void keep_tokenizer(const RunConfig& c, const std::string& sha256, const Warn& warn);

}  // namespace bamtrain
