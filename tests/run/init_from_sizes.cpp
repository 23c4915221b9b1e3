// Sizes in config.json of a folder of weights that contradict its tensors.

#include "run/init_from_sizes.h"

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "mixes/registry.h"
#include "model/huggingface_config.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

/// A run and the config.json of a folder with its model: alternating alibi and bam, ssmax, entmax.
struct Folder {
  RunConfig config;
  json source;

  /// `mixed`: the priors are mixed by dape.
  explicit Folder(bool mixed = false) {
    ModelConfig& m = config.model;
    m.vocab = 97;
    m.width = 48;
    m.layers = 4;
    m.heads = 4;
    m.kv_heads = 2;
    m.mlp.hidden = 64;
    config.data.sequence_length = 24;
    m.attention.prior =
        PriorConfig({PriorChoice(*find_prior("alibi")), PriorChoice(*find_prior("bam"))});
    if (mixed) m.attention.prior.mixes.assign(2, MixChoice(*find_mix("dape")));
    m.attention.scale = ScaleChoice(*find_scale("ssmax"));
    m.attention.normalizer = NormalizerChoice(*find_normalizer("entmax"));
    m.attention.normalizer.options.set("learned", true);
    source = json(huggingface_config(m, 24, Dtype::f32, {}));
  }

  std::string refusal(NewParts parts = {}) const {
    return error_or_none(ExitCode::checkpoint,
                         [&] { check_init_from_sizes(config, parts, "config.json", source); });
  }
};

}  // namespace

TEST_CASE("a folder with the sizes of its tensors is taken, and one that says none") {
  Folder f;
  CHECK(f.refusal().empty());
  f.source["num_key_value_heads"] = nullptr;
  f.source.erase("vocab_size");
  f.source["priors"][1].erase("parameters");
  CHECK(f.refusal().empty());
  f.source = json::object();
  CHECK(f.refusal().empty());
}

TEST_CASE("a size that contradicts the tensors is refused by its name") {
  for (const auto& [member, right] :
       {std::pair("vocab_size", 97), std::pair("hidden_size", 48),
        std::pair("num_hidden_layers", 4), std::pair("num_key_value_heads", 2),
        std::pair("intermediate_size", 64)}) {
    for (const json& wrong : {json(right + 1), json(-1), json("many"), json(true)}) {
      Folder f;
      f.source[member] = wrong;
      const std::string message = f.refusal();
      INFO(message);
      CHECK(contains(message, std::string("config.json: ") + member + ": expected " +
                                  std::to_string(right) + ", as in the tensors next to it, found " +
                                  wrong.dump()));
      CHECK(contains(message, "; use another checkpoint, or restore this one from a copy"));
    }
  }
}

TEST_CASE("a shape of a mechanism's parameter that contradicts the tensors is refused") {
  Folder f;
  f.source["priors"][1]["parameters"]["theta_beta"] = {5};
  CHECK(contains(f.refusal(), "config.json: priors[1].parameters: expected {"));
  CHECK(f.refusal({.prior = true}).empty());
  f = Folder();
  f.source["scale"]["parameters"].clear();
  CHECK(contains(f.refusal(), "config.json: scale.parameters: expected {"));
  CHECK(f.refusal({.scale = true}).empty());
  f = Folder();
  f.source["normalizer"]["parameters"]["alpha"] = 4;
  CHECK(contains(f.refusal(), "config.json: normalizer.parameters: expected {"));
  CHECK(f.refusal({.normalizer = true}).empty());
  // Another mechanism has its own shapes.
  f.source["normalizer"]["name"] = "topk";
  CHECK(f.refusal().empty());
}

TEST_CASE("shapes of a mix and of its base are compared separately") {
  Folder f(true);
  CHECK(f.refusal().empty());
  f.source["priors"][1]["parameters"]["theta_beta"] = {5};
  CHECK(contains(f.refusal({.mix = true}), "config.json: priors[1].parameters: expected {"));
  CHECK(f.refusal({.prior = true}).empty());
  f = Folder(true);
  f.source["priors"][0]["mix"]["parameters"]["bias1"] = {5};
  CHECK(contains(f.refusal({.prior = true}), "config.json: priors[0].mix.parameters: expected {"));
  CHECK(f.refusal({.mix = true}).empty());
}
