#pragma once
// The sequences that a run reads: shards, tasks, or a mixture of them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sequences.h"
#include "train/run_config.h"

namespace bamtrain {

/// Opens data.train. Throws Error naming keys and files, as documented for train().
std::unique_ptr<Sequences> open_training_data(const RunConfig& config);

/// Number of tokens of a source that are searched for the id that begins documents.
inline constexpr int64_t kSearchedTokens = 1'000'000;

/// A warning for each source whose first kSearchedTokens tokens do not contain `document_start`,
/// the id that begins documents according to data.document_start or a manifest. Without it, all
/// tokens count as one document. Throws Error as Shard::read.
std::vector<std::string> missing_document_starts(const std::vector<Source>& sources,
                                                 int64_t document_start);

/// Opens data.val; null if it is not set.
std::unique_ptr<Sequences> open_validation_data(const RunConfig& config);

}  // namespace bamtrain
