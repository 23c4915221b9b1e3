#pragma once
// The folders of shards that `tokenize` makes and replaces, and that `inspect` and `verify` are
// pointed at.

#include <string>
#include <vector>

#include "core/output_folder.h"

namespace bamtrain {

/// The sources that `path` stands for, each fit for ShardSet::open: what `bamdata tokenize` made
/// stands for its train and val folders, anything else for itself.
std::vector<std::string> shard_sources(const std::string& path);

/// Which folders with content `tokenize` replaces: with `overwrite` those of token shards and
/// nothing else, without it none.
OutputFolder::MayReplace may_replace_shards(bool overwrite);

}  // namespace bamtrain
