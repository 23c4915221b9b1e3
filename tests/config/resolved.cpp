// Each key sets its own member. A config that is written reads back equal, to the last bit.

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "fixture.h"

using bamtrain::read_run_config_text;
using bamtrain::resolved_json;
using bamtrain::RunConfig;
using nlohmann::json;

namespace {

/// Every key, each with its own non-default value. Exceptions: model.kind, since the other kind
/// refuses most keys, and model.classes, which shards leave at 0.
const std::string kEverything = R"({
  "config_version": 3, "name": "n", "seed": 9223372036854775807, "device": "cpu", "out_dir": "o",
  "model": {
    "kind": "decoder",
    "vocab": 101, "classes": 0, "width": 120, "layers": 3, "heads": 12, "kv_heads": 6,
    "head_dim": 14, "norm_position": "both", "embed_scale": true,
    "mlp": {"kind": "geglu", "hidden": 77}, "norm": {"kind": "layernorm", "eps": 3e-6},
    "tied": true, "bias": true, "init": "neox",
    "attention": {
      "prior": {"name": "bam", "init": "linear", "train": ["theta_mu"], "share": true,
                "decay": true},
      "scale": {"name": "ssmax", "delta": 1.5, "init": 0.5, "init_std": 0.25, "offset": 1,
                "scale_bias": "false", "decay": true},
      "normalizer": {"name": "softmax"}, "window": 9, "document_mask": true,
      "causal": true}},
  "init_from": {"folder": "f", "new": ["theta_mu", "scale"], "optimizer": false,
                "model_type": "gpt2", "tokenizer": "any"},
  "data": {"train": "t", "val": "v", "sequence_length": 10, "document_start": 4, "shuffle": false,
           "verify": false},
  "optimizer": {"name": "radam", "lr": 0.125, "betas": [0.75, 0.875], "eps": 2e-9,
                "weight_decay": 0.3, "clip": 0.7, "lr_multipliers": {"theta_mu": 0.2, "scale": 5}},
  "schedule": {"name": "wsd", "warmup_steps": 13, "min_ratio": 0.01, "decay_steps": 14,
               "decay_shape": "cosine"},
  "train": {"steps": 1000, "stop_at": 500, "tokens_per_step": 960,
            "sequences_per_step": 96, "micro_batch": 3, "lanes": 16, "peer_timeout": 2.5,
            "overlap": false, "shard_optimizer": true,
            "reduction": "library", "precision": "bf16", "recompute": "mlp"},
  "checkpoint": {"every": 21, "keep": 22, "keep_every": 63, "resume": "never",
                 "allow_change": ["seed", "schedule"],
                 "best": {"metric": "n@9/accuracy", "mode": "max"}},
  "eval": {"every": 31, "tokens": 32, "lengths": [33, 34], "require_all_lengths": true, "length_tokens": 35,
           "last_tokens": 30,
           "attention": 36,
           "tasks": [{"task": "copy", "lengths": [9], "samples": 37, "seed": 38, "every": 39,
                      "bleu": true, "name": "n"}]},
  "sample": {"every": 51, "prompts": ["p", ""], "tokenizer": "m", "max_tokens": 52,
             "temperature": 0.6, "top_k": 53, "top_p": 0.55, "min_p": 0.125},
  "log": {"every": 41, "tensorboard": true}
})";

RunConfig reread(const RunConfig& c) {
  return read_run_config_text(resolved_json(c).dump(2), "resolved", {});
}

/// Leaves by path; options of a mechanism count as leaves.
std::map<std::string, json> leaves(const json& value, const std::string& path = "") {
  std::map<std::string, json> out;
  if (!value.is_object() || value.empty()) return {{path, value}};
  for (const auto& [name, member] : value.items()) {
    out.merge(leaves(member, path.empty() ? name : path + "." + name));
  }
  return out;
}

}  // namespace

TEST_CASE("every key lands in its own member") {
  const RunConfig c = read_run_config_text(kEverything, "run.json", {});
  CHECK(c.config_version == 3);
  CHECK(c.name == "n");
  CHECK(c.seed == 9223372036854775807u);
  CHECK(c.device == bamtrain::DeviceKind::cpu);
  CHECK(c.out_dir == "o");
  const bamtrain::ModelConfig& m = c.model;
  CHECK(m.vocab == 101);
  CHECK(m.width == 120);
  CHECK(m.layers == 3);
  CHECK(m.heads == 12);
  CHECK(m.kv_heads == 6);
  CHECK(m.head_dim() == 14);
  CHECK(m.norm_position == bamtrain::NormPosition::both);
  CHECK(m.kind == bamtrain::ModelKind::decoder);
  CHECK(m.embed_scale);
  CHECK(m.mlp.kind == bamtrain::MlpKind::geglu);
  CHECK(m.mlp.hidden == 77);
  CHECK(m.norm.kind == bamtrain::NormKind::layernorm);
  CHECK(m.norm.eps == 3e-6);
  CHECK(m.tied);
  CHECK(m.bias == bamtrain::BiasParts(true));
  CHECK(m.init == bamtrain::InitKind::neox);
  CHECK(m.attention.prior.names() == "bam");
  CHECK(m.attention.prior.of(0).options.text("init") == "linear");
  CHECK(m.attention.prior.of(0).options.list("train") == bamtrain::StringList{"theta_mu"});
  CHECK(m.attention.prior.of(0).options.flag("share"));
  CHECK(m.attention.prior.of(0).options.flag("decay"));
  CHECK(m.attention.scale.name() == "ssmax");
  CHECK(m.attention.scale.options.number("delta") == 1.5);
  CHECK(m.attention.scale.options.number("init") == 0.5);
  CHECK(m.attention.scale.options.number("init_std") == 0.25);
  CHECK(m.attention.scale.options.number("offset") == 1.0);
  CHECK(m.attention.scale.options.text("scale_bias") == "false");
  CHECK(m.attention.scale.options.flag("decay"));
  CHECK(m.attention.normalizer.name() == "softmax");
  CHECK(m.attention.window == 9);
  CHECK(m.attention.document_mask);
  CHECK(c.init_from.folder == "f");
  CHECK_FALSE(c.init_from.optimizer);
  CHECK(c.init_from.model_type == "gpt2");
  CHECK(c.init_from.any_tokenizer);
  CHECK(c.init_from.absent == std::vector<std::string>{"theta_mu", "scale"});
  CHECK(c.data.train.list == std::vector<bamtrain::DataSource>{{"t"}});
  CHECK(c.data.val == "v");
  CHECK(c.data.sequence_length == 10);
  CHECK(c.data.document_start == 4);
  CHECK_FALSE(c.data.shuffle);
  CHECK_FALSE(c.data.verify);
  CHECK(c.optimizer.name == bamtrain::OptimizerKind::radam);
  CHECK(c.optimizer.lr == 0.125);
  CHECK(c.optimizer.beta1 == 0.75);
  CHECK(c.optimizer.beta2 == 0.875);
  CHECK(c.optimizer.eps == 2e-9);
  CHECK(c.optimizer.weight_decay == 0.3);
  CHECK(c.optimizer.clip == 0.7);
  CHECK(c.optimizer.lr_multipliers ==
        std::map<std::string, double>{{"theta_mu", 0.2}, {"scale", 5.0}});
  CHECK(c.schedule.name == bamtrain::ScheduleKind::wsd);
  CHECK(c.schedule.warmup_steps == 13);
  CHECK(c.schedule.min_ratio == 0.01);
  CHECK(c.schedule.decay_steps == 14);
  CHECK(c.schedule.decay_shape == bamtrain::DecayShape::cosine);
  CHECK(c.train.steps == 1000);
  CHECK(c.train.stop_at == 500);
  CHECK(c.train.tokens_per_step == 960);
  CHECK(c.train.sequences_per_step == 96);
  CHECK(c.train.micro_batch == 3);
  CHECK(c.train.lanes == 16);
  CHECK(c.train.peer_timeout == 2.5);
  CHECK_FALSE(c.train.overlap);
  CHECK(c.train.shard_optimizer == true);
  CHECK(c.train.precision == bamtrain::Precision::bf16);
  CHECK(c.train.reduction == bamtrain::Reduction::library);
  CHECK(c.train.recompute == bamtrain::Recompute::mlp);
  CHECK(c.checkpoint.every == 21);
  CHECK(c.checkpoint.keep == 22);
  CHECK(c.checkpoint.keep_every == 63);
  CHECK(c.checkpoint.resume == "never");
  CHECK(c.checkpoint.allow_change == std::vector<std::string>{"seed", "schedule"});
  CHECK(c.eval.every == 31);
  CHECK(c.eval.tokens == 32);
  CHECK(c.eval.lengths == std::vector<int64_t>{33, 34});
  CHECK(c.eval.require_all_lengths);
  CHECK(c.eval.length_tokens == 35);
  CHECK(c.eval.attention == 36);
  CHECK(c.sample.every == 51);
  CHECK(c.sample.prompts == std::vector<std::string>{"p", ""});
  CHECK(c.sample.tokenizer == "m");
  CHECK(c.sample.max_tokens == 52);
  CHECK(c.sample.temperature == 0.6);
  CHECK(c.sample.top_k == 53);
  CHECK(c.sample.top_p == 0.55);
  CHECK(c.sample.min_p == 0.125);
  CHECK(c.log.every == 41);
  CHECK(c.log.tensorboard);
}

TEST_CASE("a configuration that leaves nothing open is written as it was read") {
  const json written = resolved_json(read_run_config_text(kEverything, "run.json", {}));
  CHECK(written == json::parse(kEverything));
}

TEST_CASE("a resolved configuration is complete and reads back equal") {
  const auto first = resolved_json(valid_with({}));
  const auto second = resolved_json(reread(valid_with({})));
  CHECK(first.dump() == second.dump());
  // As many keys as in kEverything, except for the learning rate multipliers.
  const size_t all = leaves(json::parse(kEverything)).size();
  CHECK(leaves(json(first)).size() == all - 1);
}

TEST_CASE("values that are left open are filled in") {
  const json r = resolved_json(valid_with({}));
  CHECK(r["model"]["kv_heads"] == 4);
  CHECK(r["train"]["lanes"] == 8);
  CHECK(r["model"]["attention"]["prior"] == json({{"name", "bam"},
                                                  {"init", "laplace"},
                                                  {"train", {"theta_alpha", "theta_beta"}},
                                                  {"share", false},
                                                  {"decay", false}}));
  CHECK(r["data"]["document_start"].is_null());
  CHECK(resolved_json(valid_with({"model.attention={}"}))["model"]["attention"]["prior"]["name"] ==
        "nope");
}

TEST_CASE("biases are told by part, true and false as before there were parts") {
  using bamtrain::BiasParts;
  const auto read = [](const std::string& value) { return valid_with({"model.bias=" + value}); };
  const auto written = [&](const std::string& value) {
    return resolved_json(read(value))["model"]["bias"].dump();
  };
  CHECK(read("false").model.bias == BiasParts());
  CHECK(read("[]").model.bias == BiasParts());
  CHECK(read("true").model.bias == BiasParts(true));
  CHECK_FALSE(read("true").model.bias.head);
  BiasParts some;
  some.mlp = some.head = true;
  CHECK(read(R"(["head","mlp"])").model.bias == some);
  CHECK(written("true") == "true");
  CHECK(written("false") == "false");
  CHECK(written("[]") == "false");
  CHECK(written(R"(["norm","mlp","attention"])") == "true");
  CHECK(written(R"(["head","mlp"])") == R"(["mlp","head"])");
  CHECK(json(resolved_json(reread(read(R"(["head","mlp"])")))) ==
        json(resolved_json(read(R"(["head","mlp"])"))));
  const auto refused = [](const std::string& value) {
    return message(kValid, {"model.bias=" + value});
  };
  check_mentions(refused(R"(["mlps"])"), {"model.bias[0]", "did you mean mlp?"});
  check_mentions(refused(R"(["mlp","mlp"])"), {"model.bias: duplicate element \"mlp\""});
  check_mentions(refused("1"), {"model.bias", "found the number 1"});
  check_mentions(refused("null"), {"model.bias"});
}

TEST_CASE("each key can be set alone and changes nothing else") {
  const std::map<std::string, json> base = leaves(resolved_json(valid_with({"data.val=v"})));
  const std::map<std::string, std::string> others = {
      {"name", "other"},
      {"seed", "5"},
      {"device", "cuda"},
      {"out_dir", "other"},
      {"model.vocab", "97"},
      {"model.layers", "5"},
      {"model.kv_heads", "1"},
      {"model.head_dim", "16"},
      {"model.norm_position", "post"},
      {"model.embed_scale", "true"},
      {"model.mlp.kind", "gelu"},
      {"model.mlp.hidden", "65"},
      {"model.norm.kind", "layernorm"},
      {"model.norm.eps", "1e-6"},
      {"model.tied", "true"},
      {"model.bias", "true"},
      {"model.init", "torch"},
      {"model.width", "52"},
      {"model.attention.window", "3"},
      {"model.attention.document_mask", "true"},
      {"model.attention.prior.init", "normal"},
      {"model.attention.prior.train", "[]"},
      {"model.attention.prior.share", "true"},
      {"model.attention.scale.init", "2"},
      {"model.attention.scale.init_std", "0.01"},
      {"model.attention.scale.offset", "1"},
      {"model.attention.scale.scale_bias", "\"true\""},
      {"data.train", "other"},
      {"data.val", "other"},
      {"data.document_start", "1"},
      {"data.shuffle", "false"},
      {"data.verify", "false"},
      {"optimizer.name", "radam"},
      {"optimizer.lr", "0.5"},
      {"optimizer.betas", "[0,0.5]"},
      {"optimizer.eps", "1e-6"},
      {"optimizer.weight_decay", "0"},
      {"optimizer.clip", "0"},
      {"schedule.name", "linear"},
      {"schedule.warmup_steps", "1"},
      {"schedule.min_ratio", "0"},
      {"train.steps", "11"},
      {"train.stop_at", "1"},
      {"train.tokens_per_step", "512"},
      {"train.lanes", "2"},
      {"train.precision", "bf16"},
      {"checkpoint.every", "1"},
      {"checkpoint.keep", "1"},
      {"checkpoint.resume", "never"},
      {"checkpoint.allow_change", "[\"seed\"]"},
      {"eval.every", "1"},
      {"eval.tokens", "16"},
      {"eval.lengths", "[1]"},
      {"eval.require_all_lengths", "true"},
      {"eval.length_tokens", "0"},
      {"eval.attention", "0"},
      {"log.every", "2"},
      {"log.tensorboard", "true"}};
  for (const auto& [key, value] : others) {
    INFO(key << "=" << value);
    std::map<std::string, json> expected = base;
    REQUIRE(expected.count(key) == 1);
    json parsed = json::parse(value, nullptr, false);
    expected[key] = parsed.is_discarded() ? json(value) : parsed;
    CHECK(expected[key] != base.at(key));
    CHECK(leaves(resolved_json(valid_with({"data.val=v", key + "=" + value}))) == expected);
  }
}

TEST_CASE("numbers keep every bit on the way through the resolved configuration") {
  std::mt19937_64 random(7);
  const auto check = [](double x) {
    RunConfig c = valid_with({});
    c.optimizer.lr = x;
    int exponent = 0;
    const double mantissa = std::frexp(x, &exponent);
    c.model.attention.scale.options.set("init", mantissa);
    const RunConfig back = reread(c);
    const double y = back.optimizer.lr;
    CHECK(std::memcmp(&x, &y, sizeof x) == 0);
    CHECK(back.model.attention.scale.options.number("init") == mantissa);
  };
  for (const double x :
       {0.1, 1.0 / 3.0, 1e-3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e302,
        9007199254740993.0, 123456789012345680.0, 1e22, 1e23, 3.0}) {
    check(x);
  }
  for (int i = 0; i < 200; ++i) {
    check(std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52),
                     static_cast<int>(random() % 2000) - 1000));
  }
  for (const int64_t n :
       {int64_t{1}, (int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::max()}) {
    RunConfig c = valid_with({});
    c.seed = static_cast<uint64_t>(n);
    CHECK(reread(c).seed == static_cast<uint64_t>(n));
  }
}

TEST_CASE("an integer may be written with an exponent where that is exact") {
  CHECK(valid_with({"train.steps=1e3"}).train.steps == 1000);
  CHECK(valid_with({"train.steps=20.0"}).train.steps == 20);
}

TEST_CASE("every configuration that comes with the program is valid") {
  const auto files = shipped_configs();
  REQUIRE(files.size() >= 5);
  for (const auto& file : files) {
    INFO(file.string());
    const RunConfig c = bamtrain::read_run_config(file.string(), {});
    CHECK(c.name == file.stem().string());
    CHECK(resolved_json(reread(c)).dump() == resolved_json(c).dump());
  }
}

TEST_CASE("the shipped BAM configurations have the published sizes") {
  // Parameters of an untied model with SwiGLU and RMSNorm, excluding prior and scale.
  const auto millions = [](const char* name) {
    const auto files = shipped_configs();
    const RunConfig c = bamtrain::read_run_config((files.at(0).parent_path() / name).string(), {});
    CHECK(c.train.tokens_per_step == 589824);
    CHECK(c.data.sequence_length == 512);
    CHECK(c.model.attention.document_mask);
    CHECK(c.train.lanes == 8);
    const double C = static_cast<double>(c.model.width),
                 F = static_cast<double>(c.model.mlp.hidden);
    const double block = 4 * C * C + 3 * C * F + 2 * C;
    const double vocab = static_cast<double>(c.model.vocab);
    return (2 * vocab * C + static_cast<double>(c.model.layers) * block + C) / 1e6;
  };
  CHECK(millions("bam-120m.json") == Approx(120).epsilon(0.03));
  CHECK(millions("bam-432m.json") == Approx(432).epsilon(0.03));
  CHECK(millions("bam-1.1b.json") == Approx(1100).epsilon(0.05));
}
