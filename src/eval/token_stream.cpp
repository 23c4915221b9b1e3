#include "eval/token_stream.h"

#include <algorithm>

#include "core/error.h"

namespace bamtrain {

TokenStream::TokenStream(const ShardSet& shards, const std::vector<DocumentSpan>& stretches)
    : shards_(shards) {
  for (const DocumentSpan& s : stretches) {
    if (s.length == 0) continue;
    stretches_.push_back(s);
    starts_.push_back(tokens_);
    tokens_ += s.length;
  }
}

std::vector<TokenStream::Part> TokenStream::parts() const {
  std::vector<Part> out;
  for (size_t i = 0; i < stretches_.size(); ++i) {
    out.push_back({starts_[i], stretches_[i].length});
  }
  return out;
}

void TokenStream::read(int64_t begin, int64_t count, int32_t* out) const {
  require(begin >= 0 && count >= 0 && begin + count <= tokens_, "tokens of the stream");
  const auto behind = std::upper_bound(starts_.begin(), starts_.end(), begin);
  for (auto at = static_cast<size_t>(behind - starts_.begin()); count > 0; ++at) {
    const DocumentSpan& s = stretches_[at - 1];
    const int64_t skipped = begin - starts_[at - 1];
    const int64_t n = std::min(count, s.length - skipped);
    shards_.read_span({s.shard, s.begin + skipped, n}, out);
    begin += n;
    out += n;
    count -= n;
  }
}

std::vector<DocumentSpan> stretches_without(const ShardSet& shards,
                                            const std::vector<int64_t>& dropped) {
  std::vector<DocumentSpan> out;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards.shard(i);
    places.clear();
    for (const int64_t id : dropped) {
      shard.find_all(0, id, [&](int64_t place) { places.push_back(place); });
    }
    std::sort(places.begin(), places.end());
    places.push_back(shard.tokens());
    int64_t begin = 0;
    for (const int64_t place : places) {
      if (place > begin) out.push_back({i, begin, place - begin});
      begin = place + 1;
    }
  }
  return out;
}

}  // namespace bamtrain
