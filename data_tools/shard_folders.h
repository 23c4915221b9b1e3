#pragma once
// What `inspect` and `verify` are pointed at.

#include <string>
#include <vector>

namespace bamtrain {

/// The sources that `path` stands for, each fit for ShardSet::open: what `bamdata tokenize` made
/// stands for its train and val folders, anything else for itself.
std::vector<std::string> shard_sources(const std::string& path);

}  // namespace bamtrain
