// Batched greedy decoding, compared with each prompt decoded alone, token by token.

#include "eval/greedy_decoding.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "core/error.h"
#include "eval/small_model.h"
#include "model/incremental_decoder.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;
using bamtrain::testing::kStart;
using bamtrain::testing::SmallModel;

namespace {

using Ids = std::vector<int32_t>;

std::vector<Ids> written(const SmallModel& m, const std::vector<Ids>& prompts,
                         const GreedyDecodingLimits& limits) {
  return greedy_decode(prompts, limits, m.model(), kStart, TaskShare{}, [](double) {});
}

/// Repeatedly takes the first of the likeliest ids.
Ids truth(const SmallModel& m, const Ids& prompt, const GreedyDecodingLimits& limits) {
  IncrementalDecoder text(m.config, SmallModel::kTrained, *m.backend, m.master_weights.dtype,
                          kStart, std::ssize(prompt) + limits.most - 1);
  text.commit(m.master_weights);
  Ids out;
  for (Tensor logits = text.append(prompt);; logits = text.append({&out.back(), 1})) {
    int32_t best = 0;
    for (int32_t id = 1; id < limits.ids; ++id) {
      if (get(logits, id) > get(logits, best)) best = id;
    }
    if (std::count(limits.ends.begin(), limits.ends.end(), best) > 0) return out;
    out.push_back(best);
    if (std::ssize(out) == limits.most) return out;
  }
}

/// Prompts in no order of length; some begin with kStart, some contain it.
std::vector<Ids> some_prompts(const std::vector<int32_t>& lengths) {
  std::vector<Ids> out;
  uint32_t state = 3;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int32_t>((state >> 8) % below);
  };
  for (const int32_t length : lengths) {
    Ids p;
    for (int32_t i = 0; i < length; ++i) p.push_back(2 + draw(38));
    if (length % 2 == 0) p[0] = kStart;
    if (length > 20) p[static_cast<size_t>(draw(20))] = kStart;
    out.push_back(p);
  }
  return out;
}

}  // namespace

TEST_CASE("texts continued side by side have each the tokens that it has alone") {
  for (const char* prior : {"bam", "rope", "cable", "learned"}) {
    for (const bool mask : {false, true}) {
      INFO(prior << ", document mask " << mask);
      const SmallModel m(prior, mask);
      const bool table = prior == std::string("learned");
      const std::vector<Ids> prompts =
          some_prompts(table ? std::vector<int32_t>{3, 1, 5, 2, 5}
                             : std::vector<int32_t>{17, 1, 64, 31, 2, 29, 30, 64, 5});
      const GreedyDecodingLimits limits = {table ? 8 : 20, 40, {}};
      const std::vector<Ids> got = written(m, prompts, limits);
      REQUIRE(got.size() == prompts.size());
      for (size_t n = 0; n < prompts.size(); ++n) {
        CHECK(std::ssize(got[n]) == limits.most);
        CHECK(got[n] == truth(m, prompts[n], limits));
        CHECK(written(m, {prompts[n]}, limits)[0] == got[n]);
      }
    }
  }
}

TEST_CASE("prompts past the largest piece, in more batches than one") {
  // A batch has 8,192 tokens: 13 prompts of 600 and 3 more tokens.
  const SmallModel m("bam", false, make_cpu_backend(), Dtype::f32);
  std::vector<int32_t> lengths;
  for (int32_t n = 0; n < 16; ++n) lengths.push_back(600 - 37 * (n * 5 % 16));
  const std::vector<Ids> prompts = some_prompts(lengths);
  const GreedyDecodingLimits limits = {4, 40, {}};
  std::vector<double> shares;
  const std::vector<Ids> got = greedy_decode(prompts, limits, m.model(), kStart, TaskShare{},
                                             [&](double share) { shares.push_back(share); });
  CHECK(shares == std::vector<double>{13.0 / 16, 1});
  for (size_t n = 0; n < prompts.size(); ++n) CHECK(got[n] == truth(m, prompts[n], limits));
  CHECK(greedy_decode_bytes(600, 16, 4, m.model()) == greedy_decode_bytes(600, 13, 4, m.model()));
  CHECK(greedy_decode_bytes(600, 12, 4, m.model()) < greedy_decode_bytes(600, 13, 4, m.model()));
}

TEST_CASE("a text ends before an id that ends it, and none past those to write is written") {
  const SmallModel m("bam");
  const std::vector<Ids> prompts = some_prompts({9, 14, 3, 22, 8, 11});
  const GreedyDecodingLimits free = {12, 40, {}};
  const std::vector<Ids> all = written(m, prompts, free);
  for (int32_t end = 0; end < 40; ++end) {
    const std::vector<Ids> got = written(m, prompts, {12, 40, {end, kStart}});
    for (size_t n = 0; n < prompts.size(); ++n) {
      const auto stop = std::find_if(all[n].begin(), all[n].end(),
                                     [&](int32_t id) { return id == end || id == kStart; });
      CHECK(got[n] == Ids(all[n].begin(), stop));
    }
  }
  const GreedyDecodingLimits few = {12, 7, {}};
  const std::vector<Ids> got = written(m, prompts, few);
  for (size_t n = 0; n < prompts.size(); ++n) {
    CHECK(*std::max_element(got[n].begin(), got[n].end()) < 7);
    CHECK(got[n] == truth(m, prompts[n], few));
  }
}

TEST_CASE("of equally likely ids the smallest is written") {
  for (const bool host : {false, true}) {
    SmallModel m("bam", false, host ? make_cpu_backend() : make_reference_backend(),
                 host ? Dtype::f32 : Dtype::f64);
    const Parameter& head = *m.layout->find("lm_head.weight");
    for (int64_t i = 0; i < head.size; ++i) put(m.master_weights, head.offset + i, 0);
    CHECK(written(m, {{2, 3}, {4}}, {2, 40, {}}) == std::vector<Ids>{{0, 0}, {0, 0}});
    for (const int64_t row : {5, 9, 30}) {
      for (int64_t i = 0; i < 16; ++i) {
        // Rows of opposite signs, so that one of each pair has a positive logit.
        put(m.master_weights, head.offset + row * 16 + i, i + 1);
        put(m.master_weights, head.offset + (row + 1) * 16 + i, -i - 1);
      }
    }
    for (const Ids& text : written(m, {{2, 3}, {4}}, {2, 40, {}})) {
      for (const int32_t id : text) CHECK((id == 5 || id == 6));
    }
  }
}

TEST_CASE("logits that are no numbers are an error where their ids may be written") {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    for (const bool host : {false, true}) {
      SmallModel m("bam", false, host ? make_cpu_backend() : make_reference_backend(),
                   host ? Dtype::f32 : Dtype::f64);
      const Parameter& head = *m.layout->find("lm_head.weight");
      put(m.master_weights, head.offset + 20 * 16, bad);
      CHECK(written(m, {{2, 3}}, {3, 20, {}})[0].size() == 3);
      // The logit is +-infinity times a channel; one of these texts ends with that channel above 0.
      const std::vector<Ids> prompts = {{2, 3}, {3}, {4, 5}, {5, 7}, {6}, {8, 9}};
      try {
        written(m, prompts, {3, 21, {}});
        FAIL("expected an error");
      } catch (const Error& e) {
        CHECK(e.code() == ExitCode::nonfinite);
      }
    }
  }
}

TEST_CASE("no prompts are no work, and logits that are no numbers an error") {
  SmallModel m("bam");
  CHECK(written(m, {}, {1, 40, {}}).empty());
  for (int64_t i = 0; i < m.layout->elements(); ++i) put(m.master_weights, i, 1e308);
  CHECK_THROWS_AS(written(m, {{2, 3}}, {1, 40, {}}), Error);
}
