#pragma once
// What the processes of a run compare before its first step (dist/agreement.h).

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/loader.h"
#include "dist/agreement.h"

namespace bamtrain {

/// What this process was started for ("training"), and the digest of its program. Throws Error (io)
/// if the program cannot be read.
std::vector<Fact> program_facts(const std::string& command);

/// Versions of the libraries that compute, by name, and the instruction set that oneDNN uses
/// (empty: oneDNN is not used). With different ones, results are not bitwise identical.
std::vector<Fact> machinery_facts(const std::map<std::string, std::string>& libraries,
                                  const std::string& isa);

/// The leaves of a resolved configuration, except the paths of the data, which may differ between
/// nodes. See data_facts.
std::vector<Fact> config_facts(const nlohmann::json& resolved);

/// The identity of the data `of` ("training data"): names, sizes, headers and manifests of the
/// shards, the shares of a mixture, and a sample of the tokens (ShardSet::sample).
std::vector<Fact> data_facts(const std::string& of, const std::vector<Source>& sources);

}  // namespace bamtrain
