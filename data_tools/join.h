#pragma once
// `bamdata join`: merges several outputs of `bamdata tokenize`.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "data/manifest.h"

namespace bamtrain {

struct JoinOptions {
  std::vector<std::string> inputs;  // outputs of tokenize
  std::string output;               // a new folder of the same layout
  bool overwrite = false;
};

struct JoinReport {
  Manifest train;
  std::optional<Manifest> val;  // if any input has one
};

/// Merges the shards of all inputs to one training and one validation set: in the order of the
/// parts (tokenize --part), else in the given order. Shards are hard-linked if the file system can
/// link between the folders, else copied, which `log` reports; inputs stay. The first
/// tokenizer's file that an input has goes to each set. The output appears
/// complete or not at all. Throws Error (data) for an input that is not an output of tokenize, or
/// has another tokenizer than the first. Likewise for a part that is missing, duplicate, or made
/// from other files or with other options. Likewise for a mix of parts and other outputs, and for a
/// shard whose size differs from its manifest (verify checks the rest). Errors of the tokenizer's
/// file: as TokenizerFile. Throws Error (io) as OutputFolder.
JoinReport join(const JoinOptions& options, std::FILE* log);

}  // namespace bamtrain
