// Models whose positions see the whole sequence: the effect of padding and of token order.

#include <algorithm>
#include <cmath>

#include "build.h"
#include "catch.h"
#include "core/ignore_index.h"
#include "model/causal_lm.h"
#include "model/incremental_decoder.h"
#include "model/sequence.h"
#include "ops/nonzero_blocks.h"
#include "ops/reference/reference.h"

namespace bamtrain::testing {
namespace {

/// Every prior that has a formula for keys on both sides, and dape over some of them.
std::vector<PriorConfig> priors_of_both_sides() {
  std::vector<PriorConfig> all;
  for (const PriorConfig& p : every_prior()) {
    if (!p.of(0).info().causal_only) all.push_back(p);
  }
  return all;
}

ModelConfig bidirectional_config(PriorConfig prior) {
  ModelConfig c = small_config();
  c.attention.prior = std::move(prior);
  c.attention.scale = scale("ssmax");
  c.attention.causal = false;
  return c;
}

Batch reversed(const Batch& b) {
  Batch out = b;
  for (int64_t row = 0; row < b.B; ++row) {
    for (auto* tokens : {&out.tokens, &out.targets}) {
      std::reverse(tokens->begin() + row * b.T, tokens->begin() + (row + 1) * b.T);
    }
  }
  return out;
}

// Biases that depend only on |i - j|. Sums run over the keys in a different order.
TEST_CASE("with a prior that is the same on both sides a reversed input has the reversed output") {
  const StringList fixed_location = {"theta_alpha", "theta_beta"};
  for (const PriorConfig& p :
       {PriorConfig(prior("nope")), PriorConfig(prior("alibi", {{"asymmetry", 0.0}})),
        PriorConfig(prior("nape")), PriorConfig(prior("kerple")), PriorConfig(prior("t5")),
        PriorConfig(prior("bam", {{"train", fixed_location}})),
        mixed("dape", prior("kerple"), {{"hidden", 4.0}})}) {
    for (const char* kind : {"softmax", "entmax"}) {
      ModelConfig c = bidirectional_config(p);
      c.attention.normalizer = normalizer(kind);
      INFO(describe(c) << ", " << kind);
      const Batch batch = random_batch(2, 70, c.vocab, false), other = reversed(batch);
      for (const Dtype t : {Dtype::f64, Dtype::f32}) {
        Run run(c, t, 2, 70);
        for (const Parameter& q : run.parameters()) {
          if (q.name.ends_with("theta_mu")) {
            run.set_parameter(q.name, std::vector<double>(static_cast<size_t>(q.size), 0.0));
          }
        }
        const std::vector<double> truth = run.logits(batch), found = run.logits(other);
        std::vector<double> around;
        const auto V = static_cast<size_t>(c.vocab);
        for (size_t n = 0; n < 140; ++n) {
          const size_t at = n / 70 * 70 + (69 - n % 70);
          around.insert(around.end(), found.begin() + static_cast<int64_t>(at * V),
                        found.begin() + static_cast<int64_t>((at + 1) * V));
        }
        const double tolerance = t == Dtype::f64 ? 1e-13 : 100 * kF32;  // as in golden.cpp
        CHECK(distance(around, truth) <= tolerance * norm(truth));
        const double loss = run.differentiate(batch);
        const std::vector<double> gradients = read(run.gradients(), Role::parameter).x;
        CHECK(std::abs(run.differentiate(other) - loss) <= tolerance * loss);
        CHECK(distance(read(run.gradients(), Role::parameter).x, gradients) <=
              4 * tolerance * norm(gradients));
      }
    }
  }
  // With an asymmetric prior, the output differs.
  const ModelConfig c = bidirectional_config(PriorConfig(prior("alibi")));
  const Batch batch = random_batch(1, 20, c.vocab, false);
  Run run(c, Dtype::f64, 1, 20);
  CHECK(std::abs(run.loss(reversed(batch)) - run.loss(batch)) > 1e-6);
}

TEST_CASE("a sequence with padding is the sequence alone, on the reference and on the CPU") {
  for (const PriorConfig& p : priors_of_both_sides()) {
    const ModelConfig c = bidirectional_config(p);
    INFO(describe(c));
    const int64_t T = 80, length = 67;
    Batch alone = random_batch(1, length, c.vocab), padded = random_batch(1, T, c.vocab);
    if (Model(c, T, *make_reference_backend(), Dtype::f64).randomization()) {
      continue;  // draws of a batch depend on its columns
    }
    std::copy(alone.tokens.begin(), alone.tokens.end(), padded.tokens.begin());
    std::copy(alone.targets.begin(), alone.targets.end(), padded.targets.begin());
    padded.set_lengths({static_cast<int32_t>(length)});
    for (const Dtype t : {Dtype::f64, Dtype::f32}) {
      const double tolerance = t == Dtype::f64 ? 1e-13 : 100 * kF32;
      Run run(c, t, 1, T);
      const double counted = static_cast<double>(T) / static_cast<double>(length);
      const double loss = run.differentiate(padded) * counted;
      std::vector<double> gradients = read(run.gradients(), Role::parameter).x;
      for (double& g : gradients) g *= counted;
      // The content of the padding has no effect on other positions.
      Batch other = padded;
      for (size_t n = length; n < other.tokens.size(); ++n) other.tokens[n] = 3;
      CHECK(run.differentiate(other) * counted == loss);
      std::vector<double> of_other = read(run.gradients(), Role::parameter).x;
      for (double& g : of_other) g *= counted;
      check_equal(of_other, gradients);
      // Trained at T as well, since rope_local's window and fire's threshold depend on it.
      Run shorter(c, t, 1, length, ModelUse::training, T);
      CHECK(std::abs(shorter.differentiate(alone) - loss) <= tolerance * loss);
      CHECK(distance(read(shorter.gradients(), Role::parameter).x, gradients) <=
            4 * tolerance * norm(gradients));
    }
  }
}

TEST_CASE("bidirectional models have the same bits with 1, 2 and 4 threads, recomputed or not") {
  for (const PriorConfig& p : priors_of_both_sides()) {
    const ModelConfig c = bidirectional_config(p);
    INFO(describe(c));
    Batch batch = random_batch(3, 130, c.vocab);
    batch.set_lengths({130, 64, 97});
    if (p.of(0).info().is<RotaryFamily>()) batch.positions = {};
    std::vector<double> first;
    for (const int threads : {1, 2, 4}) {
      const Threads limit(threads);
      Run run(c, Dtype::f32, 3, 130, {make_cpu_backend(), &heap_memory()},
              threads == 2 ? Recompute::block : Recompute::none);
      run.differentiate(batch);
      const std::vector<double> gradients = read(run.gradients(), Role::parameter).x;
      if (threads == 1) first = gradients;
      check_equal(gradients, first);
    }
  }
}

TEST_CASE("rows see their document to its end, within a window on both sides, padding itself") {
  const std::vector<int32_t> tokens = {7, 7, 0, 7, 7, 7, 0, 0, 7, 9, 9};
  std::vector<int32_t> first(11), last(11), positions(11);
  lay_out_both_sides(tokens.data(), 11, 9, 0, 0, first.data(), last.data(), positions.data());
  CHECK(first == std::vector<int32_t>{0, 0, 2, 2, 2, 2, 6, 7, 7, 9, 10});
  CHECK(last == std::vector<int32_t>{1, 1, 5, 5, 5, 5, 6, 8, 8, 9, 10});
  CHECK(positions == std::vector<int32_t>{0, 1, 0, 1, 2, 3, 0, 0, 1, 0, 0});
  lay_out_both_sides(tokens.data(), 11, 9, 0, 2, first.data(), last.data(), positions.data());
  CHECK(first == std::vector<int32_t>{0, 0, 2, 2, 3, 4, 6, 7, 7, 9, 10});
  CHECK(last == std::vector<int32_t>{1, 1, 3, 4, 5, 5, 6, 8, 8, 9, 10});
  lay_out_both_sides(tokens.data(), 11, 11, std::nullopt, 0, first.data(), last.data(),
                     positions.data());
  CHECK(first == std::vector<int32_t>(11, 0));
  CHECK(last == std::vector<int32_t>(11, 10));
  CHECK(positions == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("tiles that rows of both sides see are counted") {
  const int64_t T = 200;
  const std::vector<int32_t> tokens(static_cast<size_t>(T), 1);
  std::vector<int32_t> first(200), last(200), positions(200);
  lay_out_both_sides(tokens.data(), T, 150, std::nullopt, 20, first.data(), last.data(),
                     positions.data());
  const BlockCounts count = count_blocks(nullptr, first.data(), last.data(), T);
  int64_t visible = 0;
  for (int64_t group = 0; group < live_groups(T); ++group) {
    for (int64_t tile = 0; tile <= (T - 1) / kLiveKeys; ++tile) {
      bool seen = false;
      for (int64_t i = group * kLiveRows; i < std::min(T, (group + 1) * kLiveRows); ++i) {
        const auto n = static_cast<size_t>(i);
        for (int64_t j = first[n]; j <= last[n]; ++j) seen = seen || j / kLiveKeys == tile;
      }
      visible += seen;
    }
  }
  CHECK(count.visible == visible);
  CHECK(count.nonzero == visible);
}

TEST_CASE("a bidirectional model writes no text and has no perplexity") {
  const ModelConfig c = bidirectional_config(PriorConfig(prior("alibi")));
  for (const auto& refuse : {check_incremental_decoding, check_causal_lm}) {
    try {
      refuse(c);
      FAIL("not refused");
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::config);
      CHECK(e.where() == "model.attention.causal");
      CHECK(std::string(e.what()).find("false: a position would see the token") !=
            std::string::npos);
    }
    refuse(small_config());
  }
}

}  // namespace
}  // namespace bamtrain::testing
