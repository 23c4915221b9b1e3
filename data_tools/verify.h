#pragma once
// `bamdata verify`: checks shards against their manifest.

#include <cstdio>
#include <string>

namespace bamtrain {

/// Checks every set of `path` (see shard_sources), each a folder with a manifest. Checks every
/// shard's header, size, SHA-256, token and document counts, all token ids against the vocabulary,
/// that no shard is missing or extra, and the SHA-256 of
/// the tokenizer's file that the manifest names. Each file is read once, several in parallel, one
/// per core. With a `tokenizer` (a model file; empty: not checked), also checks that it made the
/// shards. Prints a line per shard to `out`. Throws Error (data) at the end if anything was wrong,
/// and if there is no manifest to compare with.
void verify(const std::string& path, const std::string& tokenizer, std::FILE* out);

}  // namespace bamtrain
