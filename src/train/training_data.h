#pragma once
// The sequences that a run reads: shards, tasks, or a mixture of them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sequences.h"
#include "train/run_config.h"

namespace bamtrain {

/// Of data.train. Errors naming keys and files, as documented for train().
std::unique_ptr<Sequences> open_training_data(const RunConfig& config);

/// So many tokens of a source tell whether documents begin with an id.
inline constexpr int64_t kSearchedTokens = 1'000'000;

/// A sentence for each source where none of the first kSearchedTokens tokens is `document_start`,
/// with which data.document_start or a manifest says that documents begin: it is as if all tokens
/// were one document. Errors: as Shard::read.
std::vector<std::string> missing_document_starts(const std::vector<Source>& sources,
                                                 int64_t document_start);

/// Of data.val; null where there is none.
std::unique_ptr<Sequences> open_validation_data(const RunConfig& config);

}  // namespace bamtrain
