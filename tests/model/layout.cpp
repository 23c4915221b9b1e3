// Names, shapes and offsets of parameters, and how attention sees a row of tokens.

#include <algorithm>
#include <set>

#include "build.h"
#include "catch.h"
#include "core/error.h"
#include "model/sequence.h"

namespace bamtrain::testing {
namespace {

std::vector<std::string> names_of(const ParameterLayout& layout) {
  std::vector<std::string> names;
  for (const Parameter& p : layout.all()) names.push_back(p.name);
  return names;
}

ModelConfig one_layer() {
  ModelConfig c = small_config();
  c.layers = 1;
  return c;
}

TEST_CASE("a rope model has the names and shapes of a Llama checkpoint") {
  ModelConfig c = one_layer();
  c.attention.prior = prior("rope");
  const ParameterLayout layout(c, 40);
  CHECK(names_of(layout) ==
        std::vector<std::string>{
            "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
            "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
            "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight",
            "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj.weight",
            "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
            "model.norm.weight", "lm_head.weight"});
  const auto shape = [&](const std::string& name) {
    const Parameter* p = layout.find(name);
    REQUIRE(p != nullptr);
    return p->shape;
  };
  using Shape = std::vector<int64_t>;
  CHECK(shape("model.embed_tokens.weight") == Shape{29, 24});
  CHECK(shape("lm_head.weight") == Shape{29, 24});
  CHECK(shape("model.norm.weight") == Shape{24});
  CHECK(shape("model.layers.0.self_attn.q_proj.weight") == Shape{24, 24});
  CHECK(shape("model.layers.0.self_attn.k_proj.weight") == Shape{12, 24});
  CHECK(shape("model.layers.0.self_attn.v_proj.weight") == Shape{12, 24});
  CHECK(shape("model.layers.0.self_attn.o_proj.weight") == Shape{24, 24});
  CHECK(shape("model.layers.0.mlp.gate_proj.weight") == Shape{20, 24});
  CHECK(shape("model.layers.0.mlp.down_proj.weight") == Shape{24, 20});
}

TEST_CASE("a tied, biased GELU model with LayerNorm has no gate, no head, and biases") {
  ModelConfig c = one_layer();
  c.bias = c.tied = true;
  c.mlp.kind = MlpKind::gelu;
  c.norm.kind = NormKind::layernorm;
  const std::string a = "model.layers.0.self_attn.", m = "model.layers.0.mlp.";
  CHECK(
      names_of(ParameterLayout(c, 40)) ==
      std::vector<std::string>{
          "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
          "model.layers.0.input_layernorm.bias", a + "q_proj.weight", a + "k_proj.weight",
          a + "v_proj.weight", a + "q_proj.bias", a + "k_proj.bias", a + "v_proj.bias",
          a + "o_proj.weight", a + "o_proj.bias", "model.layers.0.post_attention_layernorm.weight",
          "model.layers.0.post_attention_layernorm.bias", m + "up_proj.weight", m + "up_proj.bias",
          m + "down_proj.weight", m + "down_proj.bias", "model.norm.weight", "model.norm.bias"});
}

TEST_CASE("each part has its biases for itself, and a head of classes as many rows and biases") {
  const auto biases_of = [](const std::vector<bool BiasParts::*>& parts) {
    ModelConfig c = one_layer();
    c.norm.kind = NormKind::layernorm;
    for (const auto part : parts) c.bias.*part = true;
    std::vector<std::string> names;
    for (const std::string& name : names_of(ParameterLayout(c, 40))) {
      if (name.ends_with(".bias")) names.push_back(name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string a = "model.layers.0.self_attn.", m = "model.layers.0.mlp.";
  CHECK(biases_of({}).empty());
  CHECK(biases_of({&BiasParts::attention}) ==
        Names{a + "q_proj.bias", a + "k_proj.bias", a + "v_proj.bias", a + "o_proj.bias"});
  CHECK(biases_of({&BiasParts::mlp}) ==
        Names{m + "gate_proj.bias", m + "up_proj.bias", m + "down_proj.bias"});
  CHECK(biases_of({&BiasParts::norm}) == Names{"model.layers.0.input_layernorm.bias",
                                               "model.layers.0.post_attention_layernorm.bias",
                                               "model.norm.bias"});
  CHECK(biases_of({&BiasParts::head}) == Names{"lm_head.bias"});
  CHECK(biases_of({&BiasParts::mlp, &BiasParts::head}).size() == 4);

  using Shape = std::vector<int64_t>;
  ModelConfig c = one_layer();
  c.classes = 3;
  c.bias.head = true;
  const ParameterLayout layout(c, 40);
  CHECK(layout.find("lm_head.weight")->shape == Shape{3, 24});
  CHECK(layout.find("lm_head.bias")->shape == Shape{3});
  CHECK(layout.find("lm_head.bias")->group == ParameterGroup::bias);
  CHECK_FALSE(layout.find("lm_head.bias")->decays());
  CHECK(layout.find("model.embed_tokens.weight")->shape == Shape{29, 24});
}

TEST_CASE("norms behind branches have names of their own, and none stands before the head") {
  const auto norms_of = [](NormPosition position) {
    ModelConfig c = one_layer();
    c.norm_position = position;
    std::vector<std::string> norms = names_of(ParameterLayout(c, 40));
    std::erase_if(norms, [](const std::string& n) { return n.find("norm") == std::string::npos; });
    return norms;
  };
  const std::string l = "model.layers.0.", w = "_layernorm.weight";
  using Names = std::vector<std::string>;
  CHECK(norms_of(NormPosition::post) ==
        Names{l + "post_attention" + w, l + "post_feedforward" + w});
  CHECK(norms_of(NormPosition::both) == Names{l + "input" + w, l + "post_attention" + w,
                                              l + "pre_feedforward" + w, l + "post_feedforward" + w,
                                              "model.norm.weight"});
}

TEST_CASE("heads need not make up the width") {
  ModelConfig c = one_layer();
  c.width = 22;
  c.own_head_dim = 10;
  c.bias = true;
  const ParameterLayout layout(c, 40);
  using Shape = std::vector<int64_t>;
  const std::string a = "model.layers.0.self_attn.";
  CHECK(layout.find(a + "q_proj.weight")->shape == Shape{40, 22});
  CHECK(layout.find(a + "k_proj.weight")->shape == Shape{20, 22});
  CHECK(layout.find(a + "v_proj.bias")->shape == Shape{20});
  CHECK(layout.find(a + "o_proj.weight")->shape == Shape{22, 40});
  CHECK(layout.find(a + "o_proj.bias")->shape == Shape{22});
}

TEST_CASE("RMSNorm has no bias in a biased model") {
  ModelConfig c = one_layer();
  c.bias = true;
  const ParameterLayout layout(c, 40);
  CHECK(layout.find("model.norm.bias") == nullptr);
  CHECK(layout.find("model.layers.0.input_layernorm.bias") == nullptr);
  CHECK(layout.find("model.layers.0.mlp.gate_proj.bias") != nullptr);
}

TEST_CASE("mechanisms' parameters lie in their layer, or once in the model where shared") {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  const ParameterLayout own(c, 40);
  c.attention.prior = prior("bam", {{"share", true}});
  const ParameterLayout shared(c, 40);
  for (const char* theta : {"theta_alpha", "theta_beta", "theta_mu"}) {
    const std::string leaf = std::string("prior.") + theta;
    for (int64_t l : {0, 1}) {
      CHECK(own.find(layer_prefix(l) + "self_attn." + leaf) != nullptr);
      CHECK(shared.find(layer_prefix(l) + "self_attn." + leaf) == nullptr);
    }
    CHECK(own.find("model." + leaf) == nullptr);
    CHECK(shared.find("model." + leaf) != nullptr);
    CHECK(std::count_if(shared.all().begin(), shared.all().end(),
                        [&](const Parameter& p) { return p.leaf() == theta; }) == 1);
  }
  const Parameter* s = shared.find("model.layers.1.self_attn.scale.s");
  REQUIRE(s != nullptr);
  CHECK(s->group == ParameterGroup::scale);
  CHECK(s->leaf() == "s");
  CHECK(own.find("model.layers.0.self_attn.prior.theta_alpha")->group == ParameterGroup::prior);
  CHECK(own.find("model.layers.0.self_attn.prior.theta_alpha")->trained);
  CHECK_FALSE(own.find("model.layers.0.self_attn.prior.theta_mu")->trained);
  c.attention.prior = prior("learned");
  const ParameterLayout learned(c, 40);
  const Parameter* positions = learned.find("model.embed_positions.weight");
  REQUIRE(positions != nullptr);
  CHECK(positions->shape == std::vector<int64_t>{40, 24});
  CHECK(positions->group == ParameterGroup::embedding);
}

TEST_CASE("matrices and embeddings decay, nothing else does") {
  ModelConfig c = small_config();
  c.bias = true;
  c.norm.kind = NormKind::layernorm;
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  const ParameterLayout layout(c, 40);
  for (const Parameter& p : layout.all()) {
    INFO(p.name);
    CHECK(p.decays() == (p.shape.size() == 2));
  }
}

TEST_CASE("parameters do not overlap, begin on cache lines, and fused neighbours have no gap") {
  ModelConfig c = small_config();
  c.width = 20;  // not a multiple of any useful number
  c.heads = 4;
  c.kv_heads = 2;
  c.mlp.hidden = 7;
  c.bias = true;
  c.norm.kind = NormKind::layernorm;
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  const ParameterLayout layout(c, 40);
  const auto follows = [](const std::string& name) {
    for (const char* second : {"k_proj", "v_proj", "up_proj"}) {
      if (name.find(second) != std::string::npos) return true;
    }
    return false;
  };
  // Norms, biases and mechanisms first, then the matrices.
  int64_t end = 0;
  for (const bool matrices : {false, true}) {
    for (const Parameter& p : layout.all()) {
      const bool is_matrix = p.shape.size() == 2 && !p.name.ends_with("theta_beta");
      if (is_matrix != matrices) continue;
      INFO(p.name);
      CHECK(p.rounded == matrices);
      int64_t size = 1;
      for (int64_t d : p.shape) size *= d;
      CHECK(p.size == size);
      if (follows(p.name)) {
        CHECK(p.offset == end);
      } else {
        CHECK(p.offset >= end);
        CHECK(p.offset % 16 == 0);
      }
      end = p.offset + p.size;
    }
    const int64_t of_region = matrices ? layout.elements() : layout.exact_elements();
    CHECK(of_region >= end);
    CHECK(of_region < end + 16);
  }

  std::vector<double> memory(static_cast<size_t>(layout.elements()));
  const Tensor flat(memory.data(), Dtype::f64, {layout.elements()});
  const Tensor qkv =
      fused_view_of(flat, layout.find("model.layers.1.self_attn.q_proj.weight"), 40, 20);
  CHECK(qkv.shape[0] == 40);
  CHECK(qkv.slice(0, 20, 10).data ==
        layout.view(flat, "model.layers.1.self_attn.k_proj.weight").data);
  CHECK(qkv.slice(0, 30, 10).data ==
        layout.view(flat, "model.layers.1.self_attn.v_proj.weight").data);
  const Tensor bias =
      fused_view_of(flat, layout.find("model.layers.1.self_attn.q_proj.bias"), 40, 1);
  CHECK(bias.slice(0, 30, 10).data ==
        layout.view(flat, "model.layers.1.self_attn.v_proj.bias").data);
  CHECK_FALSE(static_cast<bool>(layout.view(flat, "model.layers.2.self_attn.q_proj.weight")));
}

TEST_CASE("gates of a prior and of a scale follow q, k and v, and their constants do not") {
  ModelConfig c = one_layer();
  c.bias = true;
  c.attention.prior = prior("cable");
  c.attention.scale = scale("adaptive", {{"bias", true}});
  const ParameterLayout layout(c, 40);
  CHECK(layout.gate_columns() == 16);  // 4 + 8, and 4 unused
  const std::string a = "model.layers.0.self_attn.";
  int64_t next = layout.find(a + "q_proj.weight")->offset;
  for (const char* name : {"q_proj.weight", "k_proj.weight", "v_proj.weight", "prior.weight",
                           "scale.beta_weight", "scale.gamma_weight"}) {
    INFO(name);
    const Parameter* p = layout.find(a + name);
    REQUIRE(p != nullptr);
    CHECK(p->offset == next);
    CHECK(p->decays() == (p->group != ParameterGroup::scale));  // by default
    next += p->size;
  }
  CHECK(layout.find(a + "o_proj.weight")->offset >= next + 4 * 24);
  for (const char* name : {"prior.bias", "scale.beta_bias", "scale.gamma_bias"}) {
    INFO(name);
    const Parameter* p = layout.find(a + name);
    REQUIRE(p != nullptr);
    CHECK(p->shape == std::vector<int64_t>{4});
    CHECK_FALSE(p->decays());
  }
}

TEST_CASE("parameters are counted by group") {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  using G = ParameterGroup;
  const ParameterLayout layout(c, 40);
  CHECK(layout.count({G::embedding}) == 29 * 24);
  CHECK(layout.count({G::norm}) == 5 * 24);
  CHECK(layout.count({G::prior}) == 2 * 3 * 4);
  CHECK(layout.count({G::scale}) == 2 * 4);
  CHECK(layout.count({G::bias}) == 0);
  CHECK(layout.count({G::matrix}) == 2 * (24 * 48 + 24 * 24 + 3 * 24 * 20) + 29 * 24);
  CHECK(layout.count({G::norm, G::scale}) == 5 * 24 + 2 * 4);
}

TEST_CASE("a head dimension that rope cannot halve is refused when the model is laid out") {
  ModelConfig c = small_config();
  c.width = 20;
  c.attention.prior = prior("rope");
  CHECK_THROWS_AS(ParameterLayout(c, 40), Error);
}

// --- sequences ----------------------------------------------------------------------------------

struct Layout {
  std::vector<int32_t> first, positions;

  Layout(const std::vector<int32_t>& tokens, std::optional<int64_t> start, int64_t window)
      : first(tokens.size(), -1), positions(tokens.size(), -1) {
    lay_out_sequence(tokens.data(), static_cast<int64_t>(tokens.size()), start, window,
                     first.data(), positions.data());
  }
};
using Ints = std::vector<int32_t>;

TEST_CASE("without documents and window every position sees all before it") {
  const Layout x({5, 5, 5, 5}, {}, 0);
  CHECK(x.first == Ints{0, 0, 0, 0});
  CHECK(x.positions == Ints{0, 1, 2, 3});
}

TEST_CASE("documents restart keys and positions at their first token and at the sequence's") {
  // Starts inside a document; one document of one token; one that starts at the last position.
  const Layout x({7, 7, 1, 7, 1, 1, 7, 1}, 1, 0);
  CHECK(x.first == Ints{0, 0, 2, 2, 4, 5, 5, 7});
  CHECK(x.positions == Ints{0, 1, 0, 1, 0, 0, 1, 0});
  const Layout starts({1, 7, 7}, 1, 0);
  CHECK(starts.first == Ints{0, 0, 0});
  CHECK(starts.positions == Ints{0, 1, 2});
}

TEST_CASE("tokens that go on from others keep their document, and padding has none") {
  const std::vector<int32_t> tokens = {7, 7, 1, 7};
  const auto laid_out = [&](int64_t document, int64_t window) {
    Layout x(tokens, 1, window);
    const int64_t last =
        lay_out_sequence(tokens.data(), 4, 1, window, x.first.data(), x.positions.data(), document);
    return std::pair(x, last);
  };
  const auto [past, of_past] = laid_out(-3, 0);
  CHECK(past.first == Ints{-3, -3, 2, 2});
  CHECK(past.positions == Ints{3, 4, 0, 1});
  CHECK(of_past == 2);
  CHECK(laid_out(-3, 2).first.first == Ints{-1, 0, 2, 2});
  // A document that begins at token 3, after padding that contains document-start tokens.
  const auto [padded, of_padded] = laid_out(3, 0);
  CHECK(padded.first == Ints{0, 1, 2, 3});
  CHECK(padded.positions == Ints{0, 0, 0, 0});
  CHECK(of_padded == 3);
  CHECK(laid_out(1, 0).first.first == Ints{0, 1, 2, 2});
  // All padding: the document begins later.
  CHECK(laid_out(9, 0).second == 9);
  CHECK(laid_out(9, 2).first.first == Ints{0, 1, 2, 3});
}

TEST_CASE("a window limits the keys and leaves the positions") {
  const Layout x({7, 7, 7, 7, 7}, {}, 2);
  CHECK(x.first == Ints{0, 0, 1, 2, 3});
  CHECK(x.positions == Ints{0, 1, 2, 3, 4});
  CHECK(Layout({7, 7, 7}, {}, 1).first == Ints{0, 1, 2});
  CHECK(Layout({7, 7, 7}, {}, 3).first == Ints{0, 0, 0});
}

TEST_CASE("with a window and documents the nearer limit holds") {
  const Layout x({7, 7, 7, 1, 7, 7, 7, 1}, 1, 3);
  CHECK(x.first == Ints{0, 0, 0, 3, 3, 3, 4, 7});
  CHECK(x.positions == Ints{0, 1, 2, 0, 1, 2, 3, 0});
}

TEST_CASE("token 0 may begin documents") {
  CHECK(Layout({0, 3, 0, 3}, 0, 0).first == Ints{0, 0, 2, 2});
}

}  // namespace
}  // namespace bamtrain::testing
