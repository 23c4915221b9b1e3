// Log-likelihoods, compared with those from a model's logits, request by request.

#include "eval/log_likelihoods.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "eval/small_model.h"
#include "model/model.h"
#include "model/null_backend.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;
using bamtrain::testing::kStart;

namespace {

struct LikelihoodModel : testing::SmallModel {
  using SmallModel::SmallModel;

  std::vector<LogLikelihood> scores(const std::vector<EncodedRequest>& requests) const {
    return log_likelihoods(requests, model(), kStart, TaskShare{}, [](double) {});
  }

  /// From the log softmax of the logits, in a pass over this request alone.
  LogLikelihood truth(const EncodedRequest& r) const {
    const auto T = static_cast<int64_t>(r.ids.size());
    Arena memory;
    const Tensor all = logits(r.ids, kStart, memory);
    LogLikelihood out = {0, true, 0};
    for (int64_t n = r.begin; n < T; ++n) {
      const auto logit = [&](int64_t id) { return get(all, (n - 1) * config.vocab + id); };
      double sum = 0;
      int32_t best = 0;
      for (int32_t id = 0; id < config.vocab; ++id) {
        sum += std::exp(logit(id));
        if (logit(id) > logit(best)) best = id;
      }
      const int32_t token = r.ids[static_cast<size_t>(n)];
      out.logprob += logit(token) - std::log(sum);
      out.greedy = out.greedy && best == token;
      out.right += best == token;
    }
    return out;
  }

  /// The request with its continuation replaced by the model's greedy one.
  EncodedRequest greedily(EncodedRequest r) const {
    for (size_t n = static_cast<size_t>(r.begin); n < r.ids.size(); ++n) {
      EncodedRequest one = {{r.ids.begin(), r.ids.begin() + static_cast<std::ptrdiff_t>(n) + 1},
                            static_cast<int64_t>(n)};
      for (one.ids[n] = 0; !truth(one).greedy;) ++one.ids[n];
      r.ids[n] = one.ids[n];
    }
    return r;
  }
};

/// 40 requests of 2 to 30 ids, in no order of length; the first half begin with kStart.
std::vector<EncodedRequest> some_requests() {
  std::vector<EncodedRequest> out;
  uint32_t state = 5;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int32_t>((state >> 8) % below);
  };
  for (int n = 0; n < 40; ++n) {
    EncodedRequest r;
    const int32_t length = 2 + draw(29);
    for (int32_t i = 0; i < length; ++i) r.ids.push_back(2 + draw(38));
    if (n < 20) r.ids[0] = kStart;
    r.begin = 1 + draw(static_cast<uint32_t>(length - 1));
    out.push_back(r);
  }
  return out;
}

}  // namespace

TEST_CASE("a log-likelihood is the sum of log softmax over the continuation") {
  for (const char* prior : {"bam", "rope", "t5"}) {
    for (const bool mask : {false, true}) {
      INFO(prior << ", document mask " << mask);
      const LikelihoodModel f(prior, mask);
      const std::vector<EncodedRequest> requests = some_requests();
      const std::vector<LogLikelihood> got = f.scores(requests);
      REQUIRE(got.size() == requests.size());
      for (size_t n = 0; n < requests.size(); ++n) {
        const LogLikelihood truth = f.truth(requests[n]);
        CHECK(got[n].logprob == Approx(truth.logprob).epsilon(1e-12));
        CHECK(got[n].greedy == truth.greedy);
        CHECK(got[n].right == truth.right);
      }
    }
  }
}

TEST_CASE("what the model would write itself is greedy, and one other token is not") {
  const LikelihoodModel f("bam");
  std::vector<EncodedRequest> requests;
  for (EncodedRequest r : some_requests()) {
    if (r.ids.size() > 12) continue;
    requests.push_back(f.greedily(std::move(r)));
  }
  REQUIRE(requests.size() > 5);
  const auto continued = [&](size_t n) { return std::ssize(requests[n].ids) - requests[n].begin; };
  std::vector<LogLikelihood> got = f.scores(requests);
  for (size_t n = 0; n < got.size(); ++n) {
    CHECK(got[n].greedy);
    CHECK(got[n].right == continued(n));
  }
  for (EncodedRequest& r : requests) r.ids.back() = (r.ids.back() + 1) % 40;
  got = f.scores(requests);
  for (size_t n = 0; n < got.size(); ++n) {
    CHECK_FALSE(got[n].greedy);
    CHECK(got[n].right == continued(n) - 1);
  }
}

TEST_CASE("a request has the same bits in any company, and equal ones have one") {
  const LikelihoodModel f("bam");
  std::vector<EncodedRequest> requests = some_requests();
  const std::vector<LogLikelihood> all = f.scores(requests);
  for (const size_t n : {size_t{0}, size_t{17}, size_t{39}}) {
    CHECK(f.scores({requests[n]})[0].logprob == all[n].logprob);
  }
  std::reverse(requests.begin(), requests.end());
  requests.push_back(requests[3]);
  requests.push_back(requests[3]);
  requests.back().begin = 1;  // the same ids, more of them scored
  const std::vector<LogLikelihood> other = f.scores(requests);
  for (size_t n = 0; n < all.size(); ++n) {
    CHECK(other[n].logprob == all[all.size() - 1 - n].logprob);
  }
  CHECK(other[40].logprob == other[3].logprob);
  if (requests[3].begin > 1) CHECK(other[41].logprob < other[3].logprob);
}

TEST_CASE("more requests of one length than a batch has room for are read in several") {
  // A batch has 8,192 tokens: four requests of 2,048.
  const LikelihoodModel f("rope");
  std::vector<EncodedRequest> requests;
  for (int32_t n = 0; n < 6; ++n) {
    EncodedRequest r;
    for (int32_t i = 0; i <= 2048; ++i) r.ids.push_back(2 + (i * (n + 3) + i / 7) % 38);
    r.begin = 2040;
    requests.push_back(r);
  }
  REQUIRE(evaluation_batch(2048) == 4);
  double last = 0;
  const std::vector<LogLikelihood> got =
      log_likelihoods(requests, f.model(), kStart, TaskShare{}, [&](double share) {
        CHECK(share > last);
        last = share;
      });
  CHECK(last == 1);
  for (const size_t n : {size_t{0}, size_t{5}}) {
    CHECK(got[n].logprob == Approx(f.truth(requests[n]).logprob).epsilon(1e-11));
  }
}

/// Groups of requests with common prefixes, of 12 to `longest` ids:
/// - a single request, and a duplicate;
/// - contexts with endings of several lengths and of one token;
/// - contexts that begin like others;
/// - a context of a text with two documents;
/// - a context whose endings are too long to share it.
std::vector<EncodedRequest> grouped_requests(int32_t longest) {
  uint32_t state = 9;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int32_t>((state >> 8) % below);
  };
  const auto drawn = [&](int32_t count) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < count; ++i) ids.push_back(2 + draw(38));
    return ids;
  };
  std::vector<EncodedRequest> out;
  const auto add = [&](std::vector<int32_t> ids, const std::vector<int32_t>& ending) {
    const auto begin = std::ssize(ids);
    ids.insert(ids.end(), ending.begin(), ending.end());
    out.push_back({std::move(ids), begin});
  };
  const int32_t most = std::min(longest / 3, 20);  // per ending
  for (int n = 0; n < 12; ++n) {
    std::vector<int32_t> context = drawn(8 + draw(static_cast<uint32_t>(longest - most - 8)));
    if (n % 2 == 0) context[0] = kStart;
    if (n % 3 == 0) context[context.size() / 2] = kStart;
    for (int i = 0; i < 4; ++i)
      add(context, drawn(i == 2 ? 1 : 1 + draw(static_cast<uint32_t>(most))));
    if (n % 4 != 0) continue;
    out.push_back(out.back());
    std::vector<int32_t> part(context.begin(), context.end() - 2);  // continues differently
    add(part, {7, kStart, 9});
    add(part, {context.end() - 2, context.end()});
  }
  add(drawn(longest - 3), {1, 2, 3});
  add({kStart}, {2});
  return out;
}

TEST_CASE("requests that share a context have the bits that each has alone, in fp64") {
  // With cable, running sums begin in the padding, which changes their rounding.
  for (const char* prior :
       {"bam", "rope", "t5", "alibi", "fire", "rope_local", "learned", "cable"}) {
    for (const bool mask : {false, true}) {
      INFO(prior << ", document mask " << mask);
      const LikelihoodModel f(prior, mask);
      const bool table = prior == std::string("learned");
      const std::vector<EncodedRequest> requests =
          grouped_requests(static_cast<int32_t>(table ? LikelihoodModel::kTrained + 1 : 60));
      const std::vector<LogLikelihood> got = f.scores(requests);
      REQUIRE(got.size() == requests.size());
      for (size_t n = 0; n < requests.size(); ++n) {
        const LogLikelihood alone = f.scores({requests[n]})[0];
        if (prior == std::string("cable")) {
          CHECK(got[n].logprob == Approx(alone.logprob).epsilon(1e-12));
        } else {
          CHECK(got[n].logprob == alone.logprob);
        }
        CHECK(got[n].right == alone.right);
        CHECK(got[n].greedy == alone.greedy);
      }
    }
  }
}

TEST_CASE("the CPU gives shared contexts what it gives each request alone") {
  for (const char* prior : {"bam", "rope", "cable", "cope"}) {  // cope has no chunked prefill
    INFO(prior);
    const LikelihoodModel f(prior, true, make_cpu_backend(), Dtype::f32);
    const std::vector<EncodedRequest> requests = grouped_requests(400);
    const std::vector<LogLikelihood> got = f.scores(requests);
    for (size_t n = 0; n < requests.size(); ++n) {
      // Sums of up to 20 losses, each with a few fp32 rounding errors.
      CHECK(got[n].logprob == Approx(f.scores({requests[n]})[0].logprob).epsilon(1e-5));
    }
  }
}

namespace {

/// Counts the rows of attention.
struct CountingBackend : bamtrain::testing::NullBackend {
  explicit CountingBackend(int64_t* to) : rows(to) {}
  void attention_forward(Tensor, const AttentionSaved&, const Attention& a) override {
    *rows += a.q.shape[0] * a.q.shape[1];
  }
  int64_t* rows;
};

}  // namespace

TEST_CASE("a shared context is read once") {
  int64_t rows = 0;
  const auto tokens_read = [&](const LikelihoodModel& f,
                               const std::vector<EncodedRequest>& requests) {
    rows = 0;
    f.scores(requests);
    return rows / f.config.layers;
  };
  /// `count` contexts of `ids` ids, each with endings of 1 to 4 ids.
  const auto contexts = [](int32_t count, int32_t ids) {
    std::vector<EncodedRequest> requests;
    for (int32_t c = 0; c < count; ++c) {
      for (int32_t n = 1; n <= 4; ++n) {
        EncodedRequest r = {{}, ids};
        for (int32_t i = 0; i < ids; ++i) r.ids.push_back(2 + (i * i + c) % 37);
        for (int32_t i = 0; i < n; ++i) r.ids.push_back(3 + n);
        requests.push_back(r);
      }
    }
    return requests;
  };
  const LikelihoodModel bam("bam", false, std::make_unique<CountingBackend>(&rows), Dtype::f32);
  // First all but the last id of a context. Then that id and all but the last of each ending.
  constexpr int64_t kEndings = 1 + 2 + 3 + 4;
  CHECK(tokens_read(bam, contexts(5, 30)) == 5 * (29 + kEndings));
  CHECK(tokens_read(bam, contexts(1, 9000)) == 8999 + kEndings);  // chunked prefill
  const LikelihoodModel cope("cope", false, std::make_unique<CountingBackend>(&rows), Dtype::f32);
  CHECK(tokens_read(cope, contexts(5, 30)) == 5 * (4 * 29 + kEndings));
}

TEST_CASE("the CPU's fp32 gives what its logits give") {
  const LikelihoodModel f("bam", false, make_cpu_backend(), Dtype::f32);
  const std::vector<EncodedRequest> requests = some_requests();
  const std::vector<LogLikelihood> got = f.scores(requests);
  for (size_t n = 0; n < requests.size(); ++n) {
    // Sums of up to 29 losses, each with a few fp32 rounding errors.
    CHECK(got[n].logprob == Approx(f.truth(requests[n]).logprob).epsilon(1e-5));
  }
}

TEST_CASE("requests that are read in pieces have what a whole pass gives, beside shorter ones") {
  const LikelihoodModel f("bam", true, make_cpu_backend(), Dtype::f32);
  std::vector<EncodedRequest> requests;
  for (const int32_t inputs : {40, 8192, 8193, 8500}) {
    EncodedRequest r;
    for (int32_t i = 0; i <= inputs; ++i) r.ids.push_back(i % 3000 == 5 ? kStart : 2 + i * i % 37);
    r.begin = inputs - 300;  // spans several chunks
    if (r.begin < 1) r.begin = 20;
    requests.push_back(r);
  }
  requests.push_back({requests[3].ids, 8480});  // the same text, scored from a later position
  requests.push_back({requests[3].ids, 8490});
  requests.back().ids[8495] = 3;
  const std::vector<LogLikelihood> got = f.scores(requests);
  for (size_t n = 0; n < requests.size(); ++n) {
    const LogLikelihood truth = f.truth(requests[n]);
    CHECK(got[n].logprob == Approx(truth.logprob).epsilon(1e-5));
    CHECK(got[n].right == truth.right);
  }
  // Each further token adds its key and value in 2 layers of 2 heads of 8 numbers. Tables and rows
  // of logits add less than that again. A full pass has 2 x 16 for the residual stream alone.
  const auto bytes = [&](int64_t ids) { return log_likelihoods_bytes(ids, 1, f.model()); };
  constexpr int64_t kOfAToken = 2 * 2 * 2 * 8 * 4;
  CHECK(bytes(20001) - bytes(10001) >= 10000 * kOfAToken);
  CHECK(bytes(20001) - bytes(10001) < 2 * 10000 * kOfAToken);
  CHECK(bytes(8193) > bytes(10001));
  // A mix of long and other requests needs the larger memory of the two ways to read them.
  const auto of = [](int64_t ids) {
    return EncodedRequest{Symbols(static_cast<size_t>(ids), 1), ids - 1};
  };
  const std::vector<EncodedRequest> both = {of(10001), of(8193)};
  CHECK(log_likelihoods_bytes(both, f.model()) >= bytes(8193));
}

TEST_CASE("the longest request is found, and none are no work") {
  const std::vector<EncodedRequest> requests = {{{1, 2}, 1}, {{1, 2, 3, 4}, 2}, {{5, 6, 7, 8}, 1}};
  CHECK(longest_request(requests) == 1);
  CHECK(LikelihoodModel("bam").scores({}).empty());
}
