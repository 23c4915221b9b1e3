// Log-likelihoods against those worked out of a model's logits, request by request.

#include "eval/likelihoods.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "eval/small_model.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;

namespace {

constexpr int32_t kStart = 1;

struct Fixture : testing::SmallModel {
  using SmallModel::SmallModel;

  std::vector<Likelihood> scores(const std::vector<EncodedRequest>& requests) const {
    return likelihoods(requests, model(), kStart, TaskShare{}, [](double) {});
  }

  /// By log softmax of the logits of a text that holds the request alone.
  Likelihood truth(const EncodedRequest& r) const {
    const auto T = static_cast<int64_t>(r.ids.size());
    Arena memory;
    const Tensor all = logits(r.ids, kStart, memory);
    Likelihood out = {0, true, 0};
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

  /// The request with its continuation replaced by what the model writes.
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
      const Fixture f(prior, mask);
      const std::vector<EncodedRequest> requests = some_requests();
      const std::vector<Likelihood> got = f.scores(requests);
      REQUIRE(got.size() == requests.size());
      for (size_t n = 0; n < requests.size(); ++n) {
        const Likelihood truth = f.truth(requests[n]);
        CHECK(got[n].logprob == Approx(truth.logprob).epsilon(1e-12));
        CHECK(got[n].greedy == truth.greedy);
        CHECK(got[n].right == truth.right);
      }
    }
  }
}

TEST_CASE("what the model would write itself is greedy, and one other token is not") {
  const Fixture f("bam");
  std::vector<EncodedRequest> requests;
  for (EncodedRequest r : some_requests()) {
    if (r.ids.size() > 12) continue;
    requests.push_back(f.greedily(std::move(r)));
  }
  REQUIRE(requests.size() > 5);
  const auto continued = [&](size_t n) { return std::ssize(requests[n].ids) - requests[n].begin; };
  std::vector<Likelihood> got = f.scores(requests);
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
  const Fixture f("bam");
  std::vector<EncodedRequest> requests = some_requests();
  const std::vector<Likelihood> all = f.scores(requests);
  for (const size_t n : {size_t{0}, size_t{17}, size_t{39}}) {
    CHECK(f.scores({requests[n]})[0].logprob == all[n].logprob);
  }
  std::reverse(requests.begin(), requests.end());
  requests.push_back(requests[3]);
  requests.push_back(requests[3]);
  requests.back().begin = 1;  // the same ids, more of them asked for
  const std::vector<Likelihood> other = f.scores(requests);
  for (size_t n = 0; n < all.size(); ++n) {
    CHECK(other[n].logprob == all[all.size() - 1 - n].logprob);
  }
  CHECK(other[40].logprob == other[3].logprob);
  if (requests[3].begin > 1) CHECK(other[41].logprob < other[3].logprob);
}

TEST_CASE("more requests of one length than a batch has room for are read in several") {
  // 8,192 tokens a batch: of 2,048, four.
  const Fixture f("rope");
  std::vector<EncodedRequest> requests;
  for (int32_t n = 0; n < 6; ++n) {
    EncodedRequest r;
    for (int32_t i = 0; i <= 2048; ++i) r.ids.push_back(2 + (i * (n + 3) + i / 7) % 38);
    r.begin = 2040;
    requests.push_back(r);
  }
  REQUIRE(evaluation_batch(2048) == 4);
  double last = 0;
  const std::vector<Likelihood> got =
      likelihoods(requests, f.model(), kStart, TaskShare{}, [&](double share) {
        CHECK(share > last);
        last = share;
      });
  CHECK(last == 1);
  for (const size_t n : {size_t{0}, size_t{5}}) {
    CHECK(got[n].logprob == Approx(f.truth(requests[n]).logprob).epsilon(1e-11));
  }
}

TEST_CASE("the CPU's fp32 gives what its logits give") {
  const Fixture f("bam", false, make_cpu_backend(), Dtype::f32);
  const std::vector<EncodedRequest> requests = some_requests();
  const std::vector<Likelihood> got = f.scores(requests);
  for (size_t n = 0; n < requests.size(); ++n) {
    // Sums of up to 29 losses, each within some roundings of fp32.
    CHECK(got[n].logprob == Approx(f.truth(requests[n]).logprob).epsilon(1e-5));
  }
}

TEST_CASE("requests that are read in pieces have what a whole pass gives, beside shorter ones") {
  const Fixture f("bam", true, make_cpu_backend(), Dtype::f32);
  std::vector<EncodedRequest> requests;
  for (const int32_t inputs : {40, 8192, 8193, 8500}) {
    EncodedRequest r;
    for (int32_t i = 0; i <= inputs; ++i) r.ids.push_back(i % 3000 == 5 ? kStart : 2 + i * i % 37);
    r.begin = inputs - 300;  // over the ends of pieces
    if (r.begin < 1) r.begin = 20;
    requests.push_back(r);
  }
  const std::vector<Likelihood> got = f.scores(requests);
  for (size_t n = 0; n < requests.size(); ++n) {
    const Likelihood truth = f.truth(requests[n]);
    CHECK(got[n].logprob == Approx(truth.logprob).epsilon(1e-5));
    CHECK(got[n].right == truth.right);
  }
  // Each token more takes its key and value in 2 layers of 2 heads of 8 numbers; less than as much
  // again is tables and rows of logits. A whole pass has 2 x 16 of the stream alone.
  const auto bytes = [&](int64_t ids) { return likelihoods_bytes(ids, 1, f.model()); };
  constexpr int64_t kOfAToken = 2 * 2 * 2 * 8 * 4;
  CHECK(bytes(20001) - bytes(10001) >= 10000 * kOfAToken);
  CHECK(bytes(20001) - bytes(10001) < 2 * 10000 * kOfAToken);
  CHECK(bytes(8193) > bytes(10001));
}

TEST_CASE("the longest request is found, and none are no work") {
  const std::vector<EncodedRequest> requests = {{{1, 2}, 1}, {{1, 2, 3, 4}, 2}, {{5, 6, 7, 8}, 1}};
  CHECK(longest_request(requests) == 1);
  CHECK(Fixture("bam").scores({}).empty());
}
