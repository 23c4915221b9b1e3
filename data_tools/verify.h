#pragma once
// `bamdata verify`: whether shards are what their manifest says.

#include <cstdio>
#include <string>

namespace bamtrain {

/// Checks every set that `path` stands for (see shard_sources), each a folder with a manifest:
/// every shard's header, size, SHA-256, token and document counts, every token id below the
/// vocabulary, and that no shard is missing or one too many. Each file is read once, several at a
/// time, one on each core. With a `tokenizer` (a model file;
/// empty: none), also that it is the one that made the shards. A line for each shard goes to `out`.
/// Error (data) at the end where anything was wrong, and where there is no manifest to compare
/// with.
void verify(const std::string& path, const std::string& tokenizer, std::FILE* out);

}  // namespace bamtrain
