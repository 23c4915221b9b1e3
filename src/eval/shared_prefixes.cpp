#include "eval/shared_prefixes.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/error.h"

namespace bamtrain {

namespace {

using Requests = std::span<const EncodedRequest>;

constexpr size_t kMostRequests = 64;
constexpr int64_t kLeastSpared = 4;  // at least 1/4 of the tokens

int64_t common_beginning(const EncodedRequest& a, const EncodedRequest& b) {
  const auto end = std::mismatch(a.ids.begin(), a.ids.end(), b.ids.begin(), b.ids.end());
  return end.first - a.ids.begin();
}

/// Consecutive requests, in the order of their ids; grows by one request at a time.
struct Run {
  int64_t tokens;  // length of the common prefix
  int64_t inputs, longest;
  int64_t count = 1;

  explicit Run(const EncodedRequest& first)
      : tokens(first.begin - 1), inputs(inputs_of(first)), longest(inputs) {}
  void add(const EncodedRequest& next, int64_t in_common) {
    tokens = std::min({tokens, in_common, next.begin - 1});
    inputs += inputs_of(next);
    longest = std::max(longest, inputs_of(next));
    ++count;
  }
  int64_t spared() const { return (count - 1) * tokens; }
};

/// Size of a batch, including padding.
class Batch {
 public:
  explicit Batch(Requests requests) : requests_(requests) {}

  void add(const SharedPrefix& context) {
    ++count_;
    beginning_ = std::max(beginning_, context.tokens);
    rests_.resize(std::max(rests_.size(), context.requests.size()));
    for (size_t n = 0; n < context.requests.size(); ++n) {
      rests_[n] = std::max(rests_[n], inputs_of(requests_[context.requests[n]]) - context.tokens);
    }
    real_ += inputs_of(context, requests_);
  }
  int64_t count() const { return count_; }
  /// Tokens that are computed.
  int64_t tokens() const {
    return count_ * std::accumulate(rests_.begin(), rests_.end(), beginning_);
  }
  int64_t padding() const { return tokens() - real_; }
  /// Tokens of the longest padded text.
  int64_t longest() const { return beginning_ + rests_[0]; }

 private:
  Requests requests_;
  int64_t count_ = 0, beginning_ = 0, real_ = 0;
  std::vector<int64_t> rests_;  // longest suffix of each round
};

}  // namespace

int64_t longest_suffix(const SharedPrefix& context, Requests requests) {
  return inputs_of(requests[context.requests[0]]) - context.tokens;
}

int64_t inputs_of(const SharedPrefix& context, Requests requests) {
  int64_t tokens = context.tokens;
  for (const size_t n : context.requests) tokens += inputs_of(requests[n]) - context.tokens;
  return tokens;
}

std::vector<SharedPrefix> shared_prefixes(Requests requests, int64_t longest_suffix) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto at = [&](size_t n) -> const EncodedRequest& { return requests[order[n]]; };
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return std::tie(requests[i].ids, requests[i].begin) <
           std::tie(requests[j].ids, requests[j].begin);
  });
  std::vector<int64_t> in_common(order.size());  // with the previous request
  for (size_t n = 1; n < order.size(); ++n) in_common[n] = common_beginning(at(n - 1), at(n));

  // Dynamic program, by first request: most tokens saved from there on, and the end of its run.
  struct Best {
    int64_t spared = 0;
    size_t end = 0;
    int64_t tokens = 0;
  };
  std::vector<Best> best(order.size() + 1);
  for (size_t first = order.size(); first-- > 0;) {
    Run run(at(first));
    best[first] = {best[first + 1].spared, first + 1, run.tokens};
    const size_t end = std::min(first + kMostRequests, order.size());
    for (size_t next = first + 1; next < end; ++next) {
      run.add(at(next), in_common[next]);
      if (run.tokens == 0 || run.longest - run.tokens > longest_suffix) break;
      const int64_t spared = run.spared() + best[next + 1].spared;
      if (kLeastSpared * run.spared() < run.inputs || spared <= best[first].spared) continue;
      best[first] = {spared, next + 1, run.tokens};
    }
  }

  std::vector<SharedPrefix> contexts;
  for (size_t first = 0; first < order.size(); first = best[first].end) {
    SharedPrefix& c = contexts.emplace_back(SharedPrefix{best[first].tokens, {}});
    for (size_t n = first; n < best[first].end; ++n) c.requests.push_back(order[n]);
    std::stable_sort(c.requests.begin(), c.requests.end(), [&](size_t i, size_t j) {
      return requests[i].ids.size() > requests[j].ids.size();
    });
  }
  return contexts;
}

std::vector<std::vector<SharedPrefix>> prefix_batches(std::vector<SharedPrefix> contexts,
                                                      Requests requests, int64_t most) {
  constexpr int64_t kLeastTokens = 2048, kMostPadding = 8;  // at most 1/8 padding
  int64_t longest = 0;
  for (const SharedPrefix& c : contexts) {
    longest = std::max(longest, c.tokens + longest_suffix(c, requests));
  }
  // What determines a batch's shape, most important first: rounds, suffix length, prefix length.
  const auto shape = [&](const SharedPrefix& c) {
    return std::tuple(c.requests.size(), longest_suffix(c, requests), c.tokens);
  };
  std::stable_sort(
      contexts.begin(), contexts.end(),
      [&](const SharedPrefix& a, const SharedPrefix& b) { return shape(a) > shape(b); });
  std::vector<std::vector<SharedPrefix>> batches;
  Batch batch(requests);
  for (SharedPrefix& c : contexts) {
    Batch with = batch;
    with.add(c);
    const bool padded =
        batch.tokens() >= kLeastTokens && with.padding() * kMostPadding > with.tokens();
    if (batches.empty() || with.count() > most || with.longest() > longest || padded) {
      batches.emplace_back();
      with = Batch(requests);
      with.add(c);
    }
    batches.back().push_back(std::move(c));
    batch = std::move(with);
  }
  return batches;
}

}  // namespace bamtrain
