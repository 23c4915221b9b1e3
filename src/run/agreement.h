#pragma once
// What the processes of a run compare before its first step (dist/agreement.h).

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "data/loader.h"
#include "dist/agreement.h"

namespace bamtrain {

/// What this process was started for ("training"), and the digest of its program. Error (io) where
/// the program cannot be read.
std::vector<Fact> program_facts(const std::string& command);

/// The leaves of a resolved configuration, but for the places of the data: nodes may have them
/// elsewhere. See data_facts.
std::vector<Fact> config_facts(const nlohmann::json& resolved);

/// What identifies the data `of` ("training data"): names, sizes, headers and manifests of the
/// shards, the shares of a mixture, and a sample of the tokens (ShardSet::sample).
std::vector<Fact> data_facts(const std::string& of, const std::vector<Source>& sources);

}  // namespace bamtrain
