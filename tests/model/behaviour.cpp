// What a model's callers rely on, whatever the values.

#include <algorithm>
#include <cmath>

#include "build.h"
#include "catch.h"
#include "core/error.h"
#include "core/ignore_index.h"
#include "priors/registry.h"

namespace bamtrain::testing {
namespace {

ModelConfig bam_config() {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  return c;
}

TEST_CASE("a window as long as the sequence is no window") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : usable_dtypes()) {
    ModelConfig c = bam_config();
    const Batch batch = random_batch(2, 19, c.vocab);
    Run without(c, t, 2, 19);
    c.attention.window = 19;
    Run with(c, t, 2, 19);
    c.attention.window = 18;
    Run shorter(c, t, 2, 19);
    CHECK(with.differentiate(batch) == without.differentiate(batch));
    check_equal(read(with.gradients(), Role::parameter).x,
                read(without.gradients(), Role::parameter).x);
    CHECK(shorter.loss(batch) != without.loss(batch));
  }
}

TEST_CASE("rope_local past its training length is rope in a window of that length + 1") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : usable_dtypes()) {
    ModelConfig c = small_config();
    c.attention.prior = prior("rope_local");
    const Batch batch = random_batch(2, 30, c.vocab);
    Run local(c, t, 2, 30, ModelUse::evaluation, 12);
    c.attention.prior = prior("rope");
    Run rope(c, t, 2, 30, ModelUse::evaluation, 12);
    c.attention.window = 13;
    Run windowed(c, t, 2, 30, ModelUse::evaluation, 12);
    CHECK(local.loss(batch) == windowed.loss(batch));
    CHECK(local.loss(batch) != rope.loss(batch));
  }
}

TEST_CASE("fire with a zero network is no prior") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : usable_dtypes()) {
    ModelConfig c = small_config();
    c.attention.document_mask = true;
    const Batch batch = random_batch(2, 19, c.vocab);
    Run nope(c, t, 2, 19);
    c.attention.prior = prior("fire");
    Run fire(c, t, 2, 19);
    CHECK(fire.loss(batch) != nope.loss(batch));
    for (const Parameter& p : fire.parameters()) {
      if (p.leaf() != "w2" && p.leaf() != "b2") continue;
      fire.set_parameter(p.name, std::vector<double>(static_cast<size_t>(p.size), 0.0));
    }
    CHECK(fire.differentiate(batch) == nope.differentiate(batch));
    for (const Parameter& p : nope.parameters()) {
      INFO(p.name << " in " << name_of(t));
      check_equal(fire.gradient(p.name), nope.gradient(p.name));
    }
  }
}

TEST_CASE("document starts mean nothing without a document mask, and something with one") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : usable_dtypes()) {
    ModelConfig c = bam_config();
    Batch batch = random_batch(2, 19, c.vocab);
    REQUIRE(std::count(batch.tokens.begin(), batch.tokens.end(), 0) > 2);
    Run open(c, t, 2, 19);
    const double loss = open.loss(batch);
    c.attention.document_mask = true;
    Run masked(c, t, 2, 19);
    CHECK(masked.loss(batch) != loss);
    batch.document_start.reset();
    CHECK(open.loss(batch) == loss);
    CHECK(masked.loss(batch) == loss);
  }
}

TEST_CASE("packed documents lose what each loses alone") {
  const Threads one(1);  // many tiny passes
  for (const PriorInfo& p : all_priors()) {
    for (Dtype t : usable_dtypes()) {
      INFO(p.name << " in " << name_of(t));
      ModelConfig c = bam_config();
      c.attention.prior = prior(p.name);
      c.attention.document_mask = true;
      Batch batch = random_batch(1, 60, c.vocab);
      Run run(c, t, 1, 60);
      const double packed = run.loss(batch) * 60;
      double alone = 0;
      for (size_t begin = 0, end = 0; begin < 60; begin = end) {
        for (end = begin + 1; end < 60 && batch.tokens[end] != 0;) ++end;
        Batch one{1, static_cast<int64_t>(end - begin), {}, {}, {}};
        one.tokens.assign(batch.tokens.begin() + static_cast<int64_t>(begin),
                          batch.tokens.begin() + static_cast<int64_t>(end));
        one.targets.assign(batch.targets.begin() + static_cast<int64_t>(begin),
                           batch.targets.begin() + static_cast<int64_t>(end));
        alone += run.loss(one) * static_cast<double>(one.T);
      }
      const double tolerance = t == Dtype::f64 ? 1e-13 : t == Dtype::f32 ? 1e-6 : 0.02;
      CHECK(alone == Approx(packed).epsilon(tolerance));
    }
  }
}

TEST_CASE("batches below the planned size give the losses of their own plan") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& of_layers : every_prior()) {
    const PriorInfo& p = of_layers.pattern[0].info();
    for (Dtype t : usable_dtypes()) {
      INFO(of_layers.names() << " in " << name_of(t));
      ModelConfig c = bam_config();
      c.attention.prior = of_layers;
      // A fixed length: the default is the training length, which here is the planned length.
      if (p.is<FireFamily>()) c.attention.prior = prior("fire", {{"threshold_length", 9.0}});
      c.attention.document_mask = true;
      const Batch batch = random_batch(2, 40, c.vocab);
      Run large(c, t, 3, 70), exact(c, t, 3, 70, ModelUse::evaluation);
      const double loss = large.loss(batch);
      CHECK(exact.loss(batch) == loss);
      const auto* const embedding = p.as<EmbeddingFamily>();
      if (embedding && !embedding->value) continue;  // its table has another length
      Run own(c, t, 2, 40);
      CHECK(own.loss(batch) == loss);
    }
  }
}

/// `batch` with `columns` tokens of padding after each sequence, without targets.
Batch padded(const Batch& batch, int64_t columns) {
  Batch out{batch.B, batch.T + columns, {}, {}, batch.document_start};
  for (int64_t b = 0; b < batch.B; ++b) {
    const auto row = [&](const std::vector<int32_t>& of) { return of.begin() + b * batch.T; };
    out.tokens.insert(out.tokens.end(), row(batch.tokens), row(batch.tokens) + batch.T);
    out.targets.insert(out.targets.end(), row(batch.targets), row(batch.targets) + batch.T);
    out.tokens.insert(out.tokens.end(), static_cast<size_t>(columns), 5);
    out.targets.insert(out.targets.end(), static_cast<size_t>(columns), kIgnoreIndex);
  }
  return out;
}

TEST_CASE("padding that asks for nothing changes no loss and no gradient") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& of_layers : every_prior()) {
    INFO(of_layers.names());
    ModelConfig c = bam_config();
    c.attention.prior = of_layers;
    const PriorInfo& p = of_layers.pattern[0].info();
    // A fixed length: the default is the training length, which here is the planned length.
    if (p.is<FireFamily>()) c.attention.prior = prior("fire", {{"threshold_length", 9.0}});
    Batch batch = random_batch(2, 19, c.vocab);
    for (size_t i = 0; i < batch.targets.size(); i += 3) batch.targets[i] = kIgnoreIndex;
    Batch longer = padded(batch, 13);
    // The loss is a mean over all positions, but only the original ones contribute.
    const double share = 19.0 / 32;
    Run run(c, Dtype::f64, 2, 32);
    if (run.model().draws() > 0) {
      batch.positions.resize(batch.tokens.size());
      longer.positions.resize(longer.tokens.size());
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t i = 0; i < 32; ++i) {
          longer.positions[static_cast<size_t>(b * 32 + i)] = static_cast<int32_t>(2 * i);
          if (i < 19)
            batch.positions[static_cast<size_t>(b * 19 + i)] = static_cast<int32_t>(2 * i);
        }
      }
    }
    const double loss = run.differentiate(batch);
    std::vector<double> gradients = read(run.gradients(), Role::parameter).x;
    CHECK(run.differentiate(longer) == Approx(share * loss).epsilon(1e-13));
    for (double& g : gradients) g *= share;
    const std::vector<double> other = read(run.gradients(), Role::parameter).x;
    CHECK(norm(gradients) > 0);
    CHECK(distance(other, gradients) <= 1e-12 * norm(gradients));
  }
}

TEST_CASE("a short batch leaves no trace of a longer one before it") {
  for (const PriorConfig& of_layers : every_prior()) {
    for (Dtype t : usable_dtypes()) {
      INFO(of_layers.names() << " in " << name_of(t));
      ModelConfig c = bam_config();
      c.attention.prior = of_layers;
      if (of_layers.pattern[0].info().is<FireFamily>()) {
        c.attention.prior = prior("fire", {{"threshold_length", 9.0}});
      }
      const auto with_positions = [](Batch b, int64_t range) {
        for (int64_t i = 0; range > 0 && i < b.B * b.T; ++i) {
          b.positions.push_back(static_cast<int32_t>(i % b.T));
        }
        return b;
      };
      Run fresh(c, t, 2, 70), used(c, t, 2, 70);
      const int64_t range = fresh.model().draws();
      const Batch batch = with_positions(random_batch(2, 40, c.vocab), range);
      used.differentiate(with_positions(random_batch(2, 70, c.vocab), range));
      CHECK(used.differentiate(batch) == fresh.differentiate(batch));
      for (const Parameter& p : fresh.parameters()) {
        INFO(p.name);
        CHECK(distance(used.gradient(p.name), fresh.gradient(p.name)) == 0);
      }
    }
  }
}

TEST_CASE("gradients are added to what is there, scaled") {
  const Threads one(1);  // many tiny passes
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    const ModelConfig c = bam_config();
    const Batch batch = random_batch(2, 19, c.vocab);
    Run run(c, t, 2, 19);
    run.differentiate(batch);
    const std::vector<double> once = read(run.gradients(), Role::parameter).x;
    // 1 / 38 is already there and 2 / 38 is added: three times as much.
    double sum = 1;
    run.model().load(batch.tokens.data(), batch.targets.data(), batch.T, batch.document_start);
    run.model().forward_backward(2.0 / 38, run.gradients(), Tensor(&sum, Dtype::f64, {1}));
    CHECK(sum == Approx(1 + 38 * run.loss(batch)));
    std::vector<double> thrice = once;
    for (double& x : thrice) x *= 3;
    const double tolerance = t == Dtype::f64 ? 1e-14 : 1e-6;
    CHECK(distance(read(run.gradients(), Role::parameter).x, thrice) <= tolerance * norm(thrice));
  }
}

TEST_CASE("a scale for evaluation only is not planned for training") {
  ModelConfig c = small_config();
  c.attention.scale = scale("entropy");
  CHECK_THROWS_AS(Run(c, Dtype::f32, 1, 19), Error);
  CHECK_NOTHROW(Run(c, Dtype::f32, 1, 19, ModelUse::evaluation));
}

TEST_CASE("the learned table refuses sequences past its end") {
  ModelConfig c = small_config();
  c.attention.prior = prior("learned");
  for (Dtype t : usable_dtypes()) {
    Run run(c, t, 1, 20, ModelUse::evaluation, 19);
    CHECK_NOTHROW(run.loss(random_batch(1, 19, c.vocab)));
    CHECK_THROWS_AS(run.loss(random_batch(1, 20, c.vocab)), Error);
  }
}

TEST_CASE("no position sees a later token") {
  const Threads one(1);  // many tiny passes
  for (const PriorInfo& p : all_priors()) {
    ModelConfig c = bam_config();
    c.attention.prior = prior(p.name);
    Batch batch = random_batch(1, 40, c.vocab);
    Run run(c, Dtype::f32, 1, 40);
    const std::vector<double> before = run.logits(batch);
    for (size_t i = 20; i < 40; ++i) batch.tokens[i] = (batch.tokens[i] + 1) % 29;
    const std::vector<double> after = run.logits(batch);
    INFO(p.name);
    check_equal({after.begin(), after.begin() + 20 * 29},
                {before.begin(), before.begin() + 20 * 29});
    CHECK(distance(after, before) > 0.1);
  }
}

}  // namespace
}  // namespace bamtrain::testing
