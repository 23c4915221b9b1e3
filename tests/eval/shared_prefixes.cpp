// Plans of shared contexts, compared with groups worked out by hand, and with the minimum of tokens
// over all partitions.

#include "eval/shared_prefixes.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "catch.h"

using namespace bamtrain;

namespace {

using Requests = std::vector<EncodedRequest>;
using Ids = std::vector<int32_t>;

/// `count` ids: first, first + 1, ...
Ids consecutive(int32_t first, int32_t count) {
  Ids ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

EncodedRequest joined_request(const Ids& context, const Ids& continuation) {
  EncodedRequest r = {context, std::ssize(context)};
  r.ids.insert(r.ids.end(), continuation.begin(), continuation.end());
  return r;
}

/// Shared contexts, sorted by their first request.
std::vector<SharedPrefix> shared(const Requests& requests, int64_t longest_suffix = 256) {
  std::vector<SharedPrefix> contexts = shared_prefixes(requests, longest_suffix);
  std::sort(contexts.begin(), contexts.end(), [](const SharedPrefix& a, const SharedPrefix& b) {
    return *std::min_element(a.requests.begin(), a.requests.end()) <
           *std::min_element(b.requests.begin(), b.requests.end());
  });
  return contexts;
}

int64_t tokens_of(const std::vector<SharedPrefix>& contexts, const Requests& requests) {
  int64_t tokens = 0;
  for (const SharedPrefix& c : contexts) tokens += inputs_of(c, requests);
  return tokens;
}

struct Draw {
  uint32_t state = 11;
  int32_t operator()(uint32_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int32_t>((state >> 8) % below);
  }
};

}  // namespace

TEST_CASE("endings of one context share all of it but its last token, the longest first") {
  const Ids context = consecutive(100, 30);
  const Requests requests = {joined_request(context, {1, 2}),
                             joined_request(consecutive(500, 9), {1}),
                             joined_request(context, {1, 2, 3, 4, 5}), joined_request(context, {7}),
                             joined_request(context, {2, 2, 2})};
  const auto contexts = shared(requests);
  REQUIRE(contexts.size() == 2);
  CHECK(contexts[0].tokens == 29);
  CHECK(contexts[0].requests == std::vector<size_t>{2, 4, 0, 3});
  CHECK(contexts[1].tokens == 8);
  CHECK(contexts[1].requests == std::vector<size_t>{1});
  // 30 + 5 ids, without the last, which is not read.
  CHECK(inputs_of(requests[2]) == 34);
  CHECK(longest_suffix(contexts[0], requests) == 5);
  CHECK(inputs_of(contexts[0], requests) == 29 + 5 + 3 + 2 + 1);
}

TEST_CASE("a beginning ends before the earliest continuation, and where ids differ") {
  const Ids context = consecutive(100, 30);
  Ids longer = context;
  longer.push_back(1);
  longer.push_back(2);
  SECTION("one context goes on as another's continuation") {
    const auto contexts =
        shared({joined_request(context, {1, 2, 3}), joined_request(longer, {3, 4})});
    REQUIRE(contexts.size() == 1);
    CHECK(contexts[0].tokens == 29);
  }
  SECTION("the same ids, more of them asked for") {
    EncodedRequest more = joined_request(longer, {3, 4});
    more.begin = 20;
    const auto contexts = shared({joined_request(longer, {3, 4}), more});
    REQUIRE(contexts.size() == 1);
    CHECK(contexts[0].tokens == 19);
  }
  SECTION("contexts differ in their last ids") {
    Ids other = context;
    other[28] = 7;
    const auto contexts = shared({joined_request(context, {1, 2}), joined_request(other, {1, 2})});
    REQUIRE(contexts.size() == 1);
    CHECK(contexts[0].tokens == 28);
  }
}

TEST_CASE("what spares less than a quarter, or leaves a rest too long, is not shared") {
  // Two requests of n inputs with p common ids save p inputs: a quarter means p = n / 2.
  const auto pair = [](int32_t p, int32_t n) {
    Ids a = consecutive(100, p), b = a;
    for (int32_t i = p; i < n; ++i) {
      a.push_back(1000 + i);
      b.push_back(2000 + i);
    }
    return Requests{joined_request(a, {1}), joined_request(b, {1})};
  };
  CHECK(shared(pair(10, 20)).size() == 1);
  CHECK(shared(pair(9, 20)).size() == 2);
  CHECK(shared(pair(10, 20), 10).size() == 1);
  CHECK(shared(pair(10, 20), 9).size() == 2);
  CHECK(shared({joined_request({5}, {1, 2}), joined_request({5}, {3})}).size() == 2);
  CHECK(shared({}).empty());
}

TEST_CASE("no other division of neighbours reads fewer tokens") {
  Draw draw;
  for (int trial = 0; trial < 40; ++trial) {
    Requests requests;
    std::set<std::pair<Ids, int64_t>> seen;
    while (requests.size() < 9) {
      Ids ids;
      for (int32_t i = 0, n = 4 + draw(9); i < n; ++i) ids.push_back(draw(i < 6 ? 2 : 5));
      const EncodedRequest r = {ids, 1 + draw(static_cast<uint32_t>(ids.size() - 1))};
      if (seen.insert({r.ids, r.begin}).second) requests.push_back(r);
    }
    // Every partition of the sorted requests into parts that may be shared.
    Requests sorted;
    for (const auto& [ids, begin] : seen) sorted.push_back({ids, begin});
    int64_t fewest = INT64_MAX;
    for (uint32_t cuts = 0; cuts < 1U << (sorted.size() - 1); ++cuts) {
      int64_t tokens = 0;
      for (size_t first = 0, end; first < sorted.size(); first = end) {
        for (end = first + 1; end < sorted.size() && (cuts >> (end - 1) & 1) == 0;) ++end;
        int64_t beginning = INT64_MAX, inputs = 0, longest = 0;
        const auto count = static_cast<int64_t>(end - first);
        for (size_t n = first; n < end; ++n) {
          int64_t in_common = 0;
          while (in_common < sorted[n].begin - 1 && in_common < std::ssize(sorted[first].ids) &&
                 sorted[n].ids[static_cast<size_t>(in_common)] ==
                     sorted[first].ids[static_cast<size_t>(in_common)]) {
            ++in_common;
          }
          beginning = std::min({beginning, in_common, sorted[first].begin - 1});
          inputs += inputs_of(sorted[n]);
          longest = std::max(longest, inputs_of(sorted[n]));
        }
        const bool allowed = 4 * (count - 1) * beginning >= inputs && longest - beginning <= 7;
        tokens += count > 1 && !allowed ? 1000 : inputs - (count - 1) * beginning;
      }
      fewest = std::min(fewest, tokens);
    }
    CHECK(tokens_of(shared(requests, 7), requests) == fewest);
  }
}

TEST_CASE("a context has 64 requests at most") {
  Requests requests;
  for (int32_t n = 0; n < 130; ++n) requests.push_back(joined_request(consecutive(100, 30), {n}));
  size_t most = 0, all = 0;
  for (const SharedPrefix& c : shared(requests)) {
    most = std::max(most, c.requests.size());
    all += c.requests.size();
  }
  CHECK(most == 64);
  CHECK(all == 130);
}

namespace {

/// The size of a batch, from its rounds.
struct Taken {
  int64_t computed, real, longest;

  Taken(std::span<const SharedPrefix> batch, const Requests& requests) {
    int64_t beginning = 0, rests = 0;
    longest = real = 0;
    for (size_t round = 0; round < batch[0].requests.size(); ++round) {
      int64_t most = 0;
      for (const SharedPrefix& c : batch) {
        if (round >= c.requests.size()) continue;
        most = std::max(most, inputs_of(requests[c.requests[round]]) - c.tokens);
      }
      if (round == 0) longest = most;
      rests += most;
    }
    for (const SharedPrefix& c : batch) {
      beginning = std::max(beginning, c.tokens);
      real += inputs_of(c, requests);
    }
    longest += beginning;
    computed = std::ssize(batch) * (beginning + rests);
  }
};

}  // namespace

TEST_CASE("batches have every context once, the one of most rounds first, and little padding") {
  Draw draw;
  Requests requests;
  for (int32_t n = 0; n < 400; ++n) {
    const Ids context = consecutive(1000 * n, 60 + 10 * (n % 5) + draw(6));
    for (int32_t i = 0; i < 2 + n % 3; ++i) {
      requests.push_back(
          joined_request(context, consecutive(100 * i, 10 * (n % 4) + 2 + draw(n < 200 ? 3 : 30))));
    }
  }
  const auto contexts = shared(requests);
  REQUIRE(contexts.size() == 400);
  int64_t longest = 0;
  for (const EncodedRequest& r : requests) longest = std::max(longest, inputs_of(r));
  std::multiset<size_t> seen;
  size_t full = 0;
  for (const auto& batch : prefix_batches(contexts, requests, 50)) {
    CHECK(batch.size() <= 50);
    for (const SharedPrefix& c : batch) {
      CHECK(c.requests.size() <= batch[0].requests.size());
      seen.insert(c.requests.begin(), c.requests.end());
    }
    const Taken all(batch, requests);
    CHECK(all.longest <= longest);
    if (batch.size() == 1) continue;
    const Taken before(std::span<const SharedPrefix>(batch).first(batch.size() - 1), requests);
    if (before.computed < 2048) continue;
    CHECK(8 * (all.computed - all.real) <= all.computed);
    ++full;
  }
  CHECK(full > 0);
  CHECK(seen.size() == requests.size());
  CHECK(std::set<size_t>(seen.begin(), seen.end()).size() == requests.size());
}
