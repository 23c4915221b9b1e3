#pragma once
// Shard folders: those that `tokenize` creates and replaces, and that `inspect` and `verify` take.

#include <filesystem>
#include <string>
#include <vector>

#include "core/output_folder.h"
#include "data/manifest.h"

namespace bamtrain {

/// The file that identifies a part (tokenize --part) for `join`, in the part's output.
inline constexpr const char* kPartName = "part.json";

/// The sources of `path`, each valid for ShardSet::open: an output of `bamdata tokenize` stands for
/// its train and val folders, anything else for itself.
std::vector<std::string> shard_sources(const std::string& path);

/// "PATH: 3,000 tokens, 7 documents, 1 shard" and a newline.
std::string describe_set(const std::string& path, const Manifest& manifest);

/// Whether `tokenize` creates an entry of this name and type in its output `folder`, such as a file
/// "train/000000.bin". A tokenizer's file is one if the manifest next to it names it; so is an
/// AtomicFile's temporary of that file.
bool is_shard_entry(const std::filesystem::path& folder, const std::filesystem::path& name,
                    std::filesystem::file_type type);

/// Which non-empty folders `tokenize` may replace: with `overwrite` those that only hold token
/// shards, without it no folder.
OutputFolder::MayReplace may_replace_shards(bool overwrite);

}  // namespace bamtrain
