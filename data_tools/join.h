#pragma once
// `bamdata join`: several outputs of `bamdata tokenize` into one.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "data/manifest.h"

namespace bamtrain {

struct JoinOptions {
  std::vector<std::string> inputs;  // outputs of tokenize
  std::string output;               // becomes a folder like them
  bool overwrite = false;
};

struct JoinReport {
  Manifest train;
  std::optional<Manifest> val;  // where any of the inputs has one
};

/// One set of the shards of all inputs, training and validation each: in the order of the parts
/// where they are parts (tokenize --part), else in the order given. Shards are linked, where the
/// file system has hard links between the two folders, or else copied, which `log` says; inputs
/// stay. The output appears complete or not at all.
/// Errors: (data) where an input is no output of tokenize, or of another tokenizer than the first;
/// where a part is missing, comes twice, or was made of other files or with other options; where
/// some are parts and some are not; where a shard is not as its manifest says (size alone; see
/// verify); (io) as OutputFolder.
JoinReport join(const JoinOptions& options, std::FILE* log);

}  // namespace bamtrain
