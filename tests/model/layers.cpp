// Models whose layers have different priors.

#include <algorithm>
#include <cmath>

#include "build.h"
#include "catch.h"
#include "ops/cpu/cpu.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"

namespace bamtrain::testing {
namespace {

using Names = std::vector<std::string>;

/// Lists that cover every family, each with its layers and scale.
std::vector<ModelConfig> mixed_configs() {
  std::vector<ModelConfig> out;
  for (const auto& [list, scale_name] :
       {std::pair{Names{"rope_local", "nope", "bam"}, "ssmax"},
        {Names{"cable", "alibi"}, "none"},
        {Names{"fire", "cable", "t5", "kcable", "nape"}, "sentmax"},
        {Names{"transformer_xl", "kerple", "transformer_xl"}, "none"},
        {Names{"cope", "dape over kerple", "transformer_xl", "cope"}, "none"}}) {
    ModelConfig c = small_config();
    c.layers = list.size() == 2 ? 4 : static_cast<int64_t>(list.size());
    c.attention.prior = priors(list);
    c.attention.scale = scale(scale_name);
    c.attention.document_mask = true;
    c.bias = list.size() == 2;
    out.push_back(c);
  }
  return out;
}

std::vector<double> all_gradients(const Run& run) {
  return read(run.gradients(), Role::parameter).x;
}

TEST_CASE("a list of one prior over and over has the names and the bits of the prior alone") {
  const Threads one(1);  // many tiny passes
  for (const PriorInfo& p : all_priors()) {
    if (p.is<EmbeddingFamily>()) continue;
    for (const Dtype t : usable_dtypes()) {
      ModelConfig c = small_config();
      c.attention.prior = prior(p.name);
      c.attention.scale = scale("ssmax");
      c.bias = c.attention.document_mask = true;
      const Batch batch = random_batch(2, 19, c.vocab);
      Run alone(c, t, 2, 19);
      c.attention.prior = priors({p.name, p.name});
      Run list(c, t, 2, 19);
      INFO(describe(c) << " in " << name_of(t));
      const auto same = [](const Parameter& a, const Parameter& b) {
        return a.name == b.name && a.offset == b.offset && a.shape == b.shape;
      };
      REQUIRE(std::equal(alone.parameters().begin(), alone.parameters().end(),
                         list.parameters().begin(), list.parameters().end(), same));
      CHECK(list.planned_bytes() == alone.planned_bytes());
      CHECK(list.differentiate(batch) == alone.differentiate(batch));
      check_equal(all_gradients(list), all_gradients(alone));
    }
  }
}

TEST_CASE("a pattern repeats over the layers") {
  ModelConfig c = small_config();
  c.layers = 4;
  c.attention.prior = priors({"bam", "nope"});
  const ParameterLayout layout(c, 40);
  for (int64_t l = 0; l < 4; ++l) {
    const bool found = layout.find(layer_prefix(l) + "self_attn.prior.theta_alpha") != nullptr;
    CHECK(found == (l % 2 == 0));
  }
  const Batch batch = random_batch(2, 19, c.vocab);
  Run pattern(c, Dtype::f64, 2, 19);
  c.attention.prior = priors({"bam", "nope", "bam", "nope"});
  Run written_out(c, Dtype::f64, 2, 19);
  CHECK(pattern.differentiate(batch) == written_out.differentiate(batch));
  check_equal(all_gradients(pattern), all_gradients(written_out));
}

TEST_CASE("what layers share lies in the model once, what they do not in the layers that have it") {
  ModelConfig c = small_config();
  c.layers = 4;
  c.bias = true;
  c.attention.prior = priors({"nope", "t5", "cable", "t5"});
  const ParameterLayout layout(c, 40);
  Names found;
  for (const Parameter& p : layout.all()) {
    if (p.group == ParameterGroup::prior) found.push_back(p.name);
  }
  CHECK(found == Names{"model.prior.bias", "model.layers.2.self_attn.prior.weight",
                       "model.layers.2.self_attn.prior.bias"});
  // The gates of one layer widen the product of all layers, after its values.
  CHECK(layout.gate_columns() == 8);
  for (int64_t l = 0; l < 4; ++l) {
    const std::string of = layer_prefix(l) + "self_attn.";
    const auto from_q_to_o = [&](const std::string& name) {
      return layout.find(of + "o_proj." + name)->offset -
             layout.find(of + "q_proj." + name)->offset;
    };
    CHECK(from_q_to_o("bias") >= 48 + 8);
    CHECK(from_q_to_o("weight") >= (48 + 8) * 24);
  }
  const Parameter* v = layout.find("model.layers.2.self_attn.v_proj.weight");
  CHECK(layout.find(found[1])->offset == v->offset + v->size);
}

TEST_CASE("initial values are those of the layer's own options") {
  ModelConfig c = small_config();
  const auto laplace = prior("bam", {{"init", std::string("laplace")}});
  c.attention.prior = PriorConfig({prior("bam", {{"init", std::string("linear")}}), laplace});
  const ParameterLayout layout(c, 40);
  const auto beta = [&](int64_t l) {
    const Parameter* p = layout.find(layer_prefix(l) + "self_attn.prior.theta_beta");
    const Memory out(Dtype::f64, {p->size}, -77);
    initialize(*p, c, 40, 1, out.tensor());
    return read(out.tensor(), Role::parameter).x;
  };
  CHECK(beta(0).back() == 1);
  CHECK(beta(0).front() == 0);
  CHECK(beta(1) == std::vector<double>(4, 1));
}

TEST_CASE("nothing beside the gates of mixed layers reaches the flat gradients or the logits") {
  const Threads one(1);  // many tiny passes
  const ModelConfig c = mixed_configs()[1];
  for (const Dtype t : usable_dtypes()) {
    Run run(c, t, 2, 19);
    REQUIRE(run.model().parameters().gate_columns() == 8);
    run.differentiate(random_batch(2, 19, c.vocab));
    const auto counted = [](const std::vector<double>& x) {
      return std::count_if(x.begin(), x.end(), [](double v) { return v != 0; });
    };
    ptrdiff_t of_parameters = 0;
    for (const Parameter& p : run.parameters()) of_parameters += counted(run.gradient(p.name));
    CHECK(of_parameters > 0);
    CHECK(counted(all_gradients(run)) == of_parameters);
  }
}

TEST_CASE("mixed layers: batches below the planned size give the losses of their own plan") {
  const Threads one(1);  // many tiny passes
  for (const ModelConfig& c : mixed_configs()) {
    for (const Dtype t : usable_dtypes()) {
      INFO(describe(c) << " in " << name_of(t));
      const Batch batch = random_batch(2, 40, c.vocab);
      Run large(c, t, 3, 70, ModelUse::evaluation, 12), own(c, t, 2, 40, ModelUse::training, 12);
      CHECK(large.loss(batch) == own.loss(batch));
    }
  }
}

TEST_CASE("each layer has its own window") {
  const Threads one(1);  // many tiny passes
  ModelConfig c = small_config();
  c.attention.prior = priors({"rope_local", "nope"});
  for (const Dtype t : usable_dtypes()) {
    Batch batch = random_batch(1, 60, c.vocab, false);
    Run run(c, t, 1, 60, ModelUse::evaluation, 12);
    // Two windows of 13 reach 24 back; one window and a layer without a window reach everywhere.
    c.attention.prior = priors({"rope_local"});
    Run local(c, t, 1, 60, ModelUse::evaluation, 12);
    c.attention.prior = priors({"rope_local", "nope"});
    const auto last_row = [&](Run& r) {
      const std::vector<double> z = r.logits(batch);
      return std::vector<double>(z.end() - c.vocab, z.end());
    };
    const std::vector<double> before = last_row(run), local_before = last_row(local);
    batch.tokens[60 - 1 - 25] = (batch.tokens[60 - 1 - 25] + 1) % 29;
    CHECK(last_row(run) != before);
    CHECK(last_row(local) == local_before);
  }
}

TEST_CASE("a prior's own window is the model's in the layers with that prior alone") {
  const Threads one(1);  // many tiny passes
  ModelConfig c = small_config();
  for (const Dtype t : usable_dtypes()) {
    const Batch batch = random_batch(2, 30, c.vocab);
    const auto gradients = [&](const PriorConfig& prior, int64_t window) {
      c.attention.prior = prior;
      c.attention.window = window;
      Run run(c, t, 2, 30);
      run.differentiate(batch);
      return read(run.gradients(), Role::parameter).x;
    };
    const PriorChoice own = prior("rope_local", {{"window", 7.0}});
    const std::vector<double> all = gradients(prior("rope"), 7);
    check_equal(gradients(own, 0), all);
    check_equal(gradients(own, 12), all);
    const PriorConfig mixed({own, prior("rope")});
    const std::vector<double> one_layer = gradients(mixed, 0);
    CHECK(one_layer != all);
    CHECK(one_layer != gradients(prior("rope"), 0));
    check_equal(gradients(mixed, 7), all);
  }
}

TEST_CASE("mixed layers: documents that are packed lose what each loses alone") {
  const Threads one(1);  // many tiny passes
  for (const ModelConfig& c : mixed_configs()) {
    Batch batch = random_batch(1, 60, c.vocab);
    Run run(c, Dtype::f64, 1, 60);
    const double packed = run.loss(batch) * 60;
    double alone = 0;
    for (size_t begin = 0, end = 0; begin < 60; begin = end) {
      for (end = begin + 1; end < 60 && batch.tokens[end] != 0;) ++end;
      const auto part = [&](const std::vector<int32_t>& x) {
        return std::vector<int32_t>(x.begin() + static_cast<int64_t>(begin),
                                    x.begin() + static_cast<int64_t>(end));
      };
      const auto T = static_cast<int64_t>(end - begin);
      alone +=
          run.loss({1, T, part(batch.tokens), part(batch.targets), {}}) * static_cast<double>(T);
    }
    INFO(describe(c));
    CHECK(alone == Approx(packed).epsilon(1e-13));
  }
}

TEST_CASE("mixed layers have the same bits with 1, 2 and 4 threads, recomputed or not, again") {
  for (const ModelConfig& c : mixed_configs()) {
    const Batch batch = random_batch(2, 130, c.vocab);
    for (const Dtype t : usable_dtypes()) {
      const auto device = [t]() -> Device {
        return {t == Dtype::f64 ? make_reference_backend() : make_cpu_backend(), &host_memory()};
      };
      INFO(describe(c) << " in " << name_of(t));
      Run first(c, t, 2, 130, device());
      const double loss = first.differentiate(batch);
      const std::vector<double> gradients = all_gradients(first);
      for (const int threads : {1, 2, 4}) {
        const Threads limit(threads);
        for (const Recompute r : {Recompute::none, Recompute::block}) {
          Run run(c, t, 2, 130, device(), r);
          for (int pass = 0; pass < 2; ++pass) {
            CHECK(run.differentiate(batch) == loss);
            check_equal(all_gradients(run), gradients);
          }
        }
        if (t == Dtype::f64) break;  // slow, and single-threaded
      }
    }
  }
}

TEST_CASE("mixed layers of several tiles agree with the reference in fp32 and bf16") {
  for (ModelConfig c : mixed_configs()) {
    c.vocab = 301;
    c.width = 192;
    c.mlp.hidden = 250;
    // A slope changes when rounding moves a count across a position, or a unit across its kink.
    if (c.attention.prior.names().find("cope") != std::string::npos) continue;
    // A milder scale: five layers of sharp rows would accept too much, see below.
    if (c.attention.scale.name() == "sentmax") c.attention.scale = scale("none");
    const Batch batch = random_batch(2, 130, c.vocab);
    INFO(describe(c));
    Run truth(c, Dtype::f64, 2, 130), moved(c, Dtype::f64, 2, 130);
    round_weights(moved);
    truth.differentiate(batch);
    moved.differentiate(batch);
    const std::vector<double> exact = all_gradients(truth);
    // bf16 as in golden.cpp, where the yardstick is one rounding per weight. fp32, whose sums round
    // too, as in backends.cpp.
    const double change = distance(all_gradients(moved), exact) / norm(exact);
    CHECK(change < 20 * kBf16);
    for (const Dtype t : with_products({Dtype::f32, Dtype::bf16})) {
      Run run(c, t, 2, 130);
      run.differentiate(batch);
      const double error = distance(all_gradients(run), exact) / norm(exact);
      INFO("error " << error);
      CHECK(error <= (t == Dtype::f32 ? 300 * kF32 : 6 * change));
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
