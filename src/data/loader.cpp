#include "data/loader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/permutation.h"

namespace bamtrain {

namespace {

void require_range(int64_t first, int64_t count) {
  require(first >= 0 && count >= 0 && first <= std::numeric_limits<int64_t>::max() - count,
          "windows numbered from 0 to 2^63 - 1");
}

std::vector<double> source_weights(const std::vector<Source>& sources) {
  std::vector<double> weights;
  for (const Source& s : sources) weights.push_back(s.weight);
  return weights;
}

/// Throws Error if the manifests of two sources give ids different meanings.
void check_same_ids(const std::vector<Source>& sources) {
  const ShardSet* first = nullptr;
  for (const Source& s : sources) {
    if (!s.shards->manifest()) continue;
    if (!first) first = s.shards.get();
    const Manifest &a = *first->manifest(), &b = *s.shards->manifest();
    const auto refuse = [&](const std::string& what, const std::string& one,
                            const std::string& other, const char* remedy) {
      throw Error(ExitCode::data, s.shards->source(),
                  what + " of " + first->source() + " (" + one + "), to mix them", other, remedy);
    };
    if (a.tokenizer_sha256 != b.tokenizer_sha256) {
      refuse("the tokenizer", "sha256 " + a.tokenizer_sha256,
             "another one (sha256 " + b.tokenizer_sha256 + ")",
             "tokenize all texts with one tokenizer");
    }
    const auto text = [](const std::optional<int64_t>& id) {
      return id ? "id " + std::to_string(*id) : "no id";
    };
    if (a.document_start != b.document_start) {
      refuse("the document start", text(a.document_start), text(b.document_start),
             "tokenize all texts with the same options");
    }
  }
}

/// Cumulative counts of windows of T + 1 tokens, by shard.
std::vector<int64_t> count_windows(const ShardSet& shards, int64_t T) {
  std::vector<int64_t> ends;
  int64_t windows = 0, longest = 0;
  for (int64_t i = 0; i < shards.size(); ++i) {
    const int64_t tokens = shards.shard(i).tokens();
    longest = std::max(longest, tokens);
    if (tokens > 0) windows += (tokens - 1) / T;
    ends.push_back(windows);
  }
  if (windows == 0) {
    throw Error(
        ExitCode::data, shards.source(),
        "a shard of at least data.sequence_length + 1 = " + std::to_string(T + 1) + " tokens",
        std::to_string(shards.tokens()) + " tokens in " + std::to_string(shards.size()) +
            " shards, at most " + std::to_string(longest) + " in one",
        "use a shorter data.sequence_length or more text");
  }
  return ends;
}

}  // namespace

Loader::Loader(std::vector<Source> sources, int64_t sequence_length, uint64_t seed, bool shuffle)
    : sources_(std::move(sources)),
      order_(source_weights(sources_)),
      sequence_length_(sequence_length),
      seed_(seed),
      shuffle_(shuffle),
      ahead_(sequence_length + 1,
             [this](int64_t first, int64_t count, int32_t* out, const ReadAhead::Arrived& arrived) {
               announce(first, count);
               read_here(first, count, out, arrived);
             }) {
  require(sequence_length >= 1, "a sequence of at least one token");
  check_same_ids(sources_);
  for (const Source& s : sources_)
    window_ends_.push_back(count_windows(*s.shards, sequence_length));
}

Loader::Loader(std::shared_ptr<const ShardSet> shards, int64_t sequence_length, uint64_t seed,
               bool shuffle)
    : Loader(std::vector<Source>{{std::move(shards), 1}}, sequence_length, seed, shuffle) {}

DocumentSpan Loader::window(size_t source, int64_t position) const {
  const std::vector<int64_t>& ends = window_ends_[source];
  const auto end = std::upper_bound(ends.begin(), ends.end(), position);
  const int64_t before = end == ends.begin() ? 0 : *(end - 1);
  return {end - ends.begin(), (position - before) * sequence_length_, sequence_length_ + 1};
}

template <class F>
void Loader::for_each_window(int64_t first, int64_t count, F&& f) const {
  // Of the previous window; reused while the source's window count and the epoch stay the same.
  std::optional<Permutation> permutation;
  int64_t windows = 0, epoch = 0;
  for (int64_t row = 0; row < count; ++row) {
    const auto [index, number] = order_(first + row);
    const auto source = static_cast<size_t>(index);
    const int64_t n = windows_per_epoch(source);
    if (shuffle_ && (!permutation || windows != n || epoch != number / n)) {
      windows = n;
      epoch = number / n;
      permutation.emplace(n, seed_, epoch);
    }
    const int64_t position = number % n;
    if (!f(row, *sources_[source].shards,
           window(source, shuffle_ ? (*permutation)(position) : position))) {
      return;
    }
  }
}

/// Asks the system for all windows at once, so that it may read them in parallel.
void Loader::announce(int64_t first, int64_t count) const {
  for_each_window(first, count, [](int64_t, const ShardSet& shards, const DocumentSpan& w) {
    shards.shard(w.shard).will_need(w.begin, w.length);
    return true;
  });
}

template <class F>
void Loader::read_here(int64_t first, int64_t count, int32_t* out, F&& arrived) const {
  for_each_window(first, count, [&](int64_t row, const ShardSet& shards, const DocumentSpan& span) {
    shards.read_span(span, out + row * (sequence_length_ + 1));
    return arrived(row + 1);
  });
}

void Loader::read(int64_t first, int64_t count, int32_t* out) const {
  require_range(first, count);
  if (ahead_.take(first, count, out)) return;
  read_here(first, count, out, [](int64_t) { return true; });
}

void Loader::reserve_ahead(int64_t count) { ahead_.reserve(count); }

void Loader::prefetch(int64_t first, int64_t count) {
  require_range(first, count);
  ahead_.hint(first, count);
}

}  // namespace bamtrain
