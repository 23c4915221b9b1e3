#pragma once
// Shard sets over what a test has written, and windows that a loader reads from them.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/files.h"
#include "data/loader.h"
#include "data/shard_set.h"

namespace bamtrain::testing {

using Tokens = std::vector<int32_t>;

constexpr int64_t kVocab = 60000;

inline std::shared_ptr<const ShardSet> open_set(const TemporaryFolder& folder) {
  return std::make_shared<const ShardSet>(ShardSet::open(folder.path(), kVocab));
}

inline Tokens windows(const Loader& loader, int64_t first, int64_t count) {
  Tokens out(static_cast<size_t>(count * (loader.sequence_length() + 1)));
  loader.read(first, count, out.data());
  return out;
}

}  // namespace bamtrain::testing
