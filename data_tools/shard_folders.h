#pragma once
// The folders of shards that `tokenize` makes and replaces, and that `inspect` and `verify` are
// pointed at.

#include <filesystem>
#include <string>
#include <vector>

#include "core/output_folder.h"
#include "data/manifest.h"

namespace bamtrain {

/// The file in the output of a part (tokenize --part) that says which part it is, for `join`.
inline constexpr const char* kPartName = "part.json";

/// The sources that `path` stands for, each fit for ShardSet::open: what `bamdata tokenize` made
/// stands for its train and val folders, anything else for itself.
std::vector<std::string> shard_sources(const std::string& path);

/// "PATH: 3,000 tokens, 7 documents, 1 shard" and the line's end.
std::string describe_set(const std::string& path, const Manifest& manifest);

/// Whether `tokenize` makes an entry of this type under this name in its output: a file
/// "train/000000.bin".
bool is_shard_entry(const std::filesystem::path& name, std::filesystem::file_type type);

/// Which folders with content `tokenize` replaces: with `overwrite` those of token shards and
/// nothing else, without it none.
OutputFolder::MayReplace may_replace_shards(bool overwrite);

}  // namespace bamtrain
