#include "data_tools/document_shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/durable_file.h"

namespace bamtrain {
namespace {

std::string bucket_name(size_t bucket) { return fmt::format("{:03}", bucket); }

}  // namespace

bool DocumentShuffle::is_bucket(const std::string& name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string behind = bucket_name(kBuckets);
  return name.size() == behind.size() && std::all_of(name.begin(), name.end(), is_digit) &&
         name < behind;
}

DocumentShuffle::DocumentShuffle(const std::string& folder, int width, uint64_t seed,
                                 const State& state)
    : folder_(folder), rng_(seed, "bamdata.shuffle"), state_(state) {
  for (size_t b = 0; b < kBuckets; ++b) {
    buckets_[b] =
        std::make_unique<DocumentSpill>(folder + "/" + bucket_name(b), width, state.bytes[b]);
  }
}

void DocumentShuffle::append(std::span<const int32_t> document) {
  const uint64_t draw = rng_.bits(static_cast<uint64_t>(state_.documents++));
  static_assert(kBuckets == 256, "the highest byte of a draw");
  buckets_[draw >> 56]->append(draw, document);
}

DocumentShuffle::State DocumentShuffle::sync() {
  for (size_t b = 0; b < kBuckets; ++b) state_.bytes[b] = buckets_[b]->sync();
  sync_folder(folder_);
  return state_;
}

void DocumentShuffle::write(int bucket, DocumentSink* sink) {
  DocumentSpill& spill = *buckets_[static_cast<size_t>(bucket)];
  std::vector<DocumentSpill::Record> records;
  spill.for_each([&](const DocumentSpill::Record& record) { records.push_back(record); });
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::pair(a.number, a.offset) < std::pair(b.number, b.offset);
  });
  std::vector<int32_t> tokens;
  for (const DocumentSpill::Record& record : records) {
    spill.read(record, &tokens);
    sink->append(tokens);
  }
}

}  // namespace bamtrain
