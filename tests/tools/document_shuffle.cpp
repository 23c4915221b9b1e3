#include "data_tools/document_shuffle.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

struct Collected : DocumentSink {
  std::vector<int32_t> numbers;
  void append(std::span<const int32_t> document) override { numbers.push_back(document[0]); }
};

/// The order of documents 0, 1, .... With `ends_at`, two processes do the work, and the first one
/// loses what it did after that.
std::vector<int32_t> shuffled(int32_t count, uint64_t seed, int32_t ends_at) {
  const TemporaryFolder folder;
  DocumentShuffle::State state;
  int32_t at = 0;
  Collected all;
  for (const int32_t end : {ends_at, count}) {
    DocumentShuffle shuffle(folder.path(), 2, seed, state);
    for (; at < end; ++at) shuffle.append(std::vector<int32_t>{at, 1, 2});
    if (end < count) {
      state = shuffle.sync();
      for (int32_t lost = 0; lost < 50; ++lost) shuffle.append(std::vector<int32_t>{9999});
      continue;
    }
    for (int b = 0; b < DocumentShuffle::kBuckets; ++b) shuffle.write(b, &all);
  }
  return all.numbers;
}

TEST_CASE("the order is that of the draws of all documents, whoever put them in") {
  constexpr int32_t kCount = 2000;
  const Rng rng(7, "bamdata.shuffle");
  std::vector<int32_t> expected(kCount);
  for (int32_t i = 0; i < kCount; ++i) expected[static_cast<size_t>(i)] = i;
  std::sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
    return rng.bits(static_cast<uint64_t>(a)) < rng.bits(static_cast<uint64_t>(b));
  });
  CHECK(shuffled(kCount, 7, kCount) == expected);
  CHECK(shuffled(kCount, 7, 1234) == expected);
  CHECK(shuffled(kCount, 8, kCount) != expected);
}

}  // namespace
}  // namespace bamtrain
