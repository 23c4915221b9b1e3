// A run that starts from a folder of weights: it has the folder's values, or says why not.

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/weights_folder.h"
#include "core/error.h"
#include "core/sha256.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A run whose parameters keep their initial values: one step at a learning rate that is 0 in fp32.
Json still_run(const Workplace& w) {
  Json c = small_run(w);
  c["optimizer"]["lr"] = 1e-300;
  c["data"]["shuffle"] = false;
  c["train"]["stop_at"] = 1;
  return c;
}

std::string first_checkpoint(const Workplace& w, const std::string& out) {
  return w.path(out + "/checkpoint-00000001");
}

void export_checkpoint(const std::string& checkpoint, const std::string& folder,
                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {bamtrain_program(), "export",   "--checkpoint",
                                      checkpoint,         "--output", folder};
  command.insert(command.end(), more.begin(), more.end());
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
}

/// A run of rope with still_run, exported to w.path("hf").
struct Exported {
  Workplace w;
  Json config = still_run(w);

  Exported() {
    config["model"]["attention"] = {{"prior", {{"name", "rope"}}}};
    const Outcome o = run_config_into(w, config, "first");
    INFO(o.output);
    REQUIRE(o.code == 0);
    export_checkpoint(first_checkpoint(w, "first"), w.path("hf"));
  }

  /// Another run, starting from the folder.
  Outcome next(const std::vector<std::string>& overrides = {}, const std::string& out = "next") {
    config["init_from"] = {{"folder", w.path("hf")}};
    config["seed"] = 8;
    return run_config_into(w, config, out, overrides);
  }

  void check_refused(const std::vector<std::string>& overrides,
                     const std::vector<std::string>& words) {
    const Outcome o = next(overrides);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
    for (const std::string& word : words) {
      INFO("expected in the message: " << word);
      CHECK(o.output.find(word) != std::string::npos);
    }
    CHECK_FALSE(fs::exists(w.path("next")));
  }
};

/// Writes the tensors of `folder` again after `change`, whose second argument holds the memory of
/// added ones.
using Change = std::function<void(std::vector<NamedTensor>*, std::vector<std::vector<char>>*)>;
void rewrite(const std::string& folder, const Change& change) {
  std::vector<std::vector<char>> memory;
  std::vector<NamedTensor> tensors;
  {
    const WeightsFolder weights = WeightsFolder::open(folder);
    for (const auto& [name, place] : weights.tensors()) {
      memory.emplace_back(static_cast<size_t>(place.entry->bytes));
      place.file->read(*place.entry, memory.back().data());
      tensors.push_back({name, place.entry->dtype, place.entry->shape, memory.back().data()});
    }
  }
  change(&tensors, &memory);
  write_weights(folder, tensors, int64_t{1} << 40);
}

NamedTensor& named(std::vector<NamedTensor>* tensors, const std::string& name) {
  for (NamedTensor& t : *tensors) {
    if (t.name == name) return t;
  }
  FAIL(name);
  return tensors->front();
}

}  // namespace

TEST_CASE(
    "export and init_from round trip: the same first loss and the same parameters, to the bit") {
  const std::vector<Json> attentions = {
      {{"prior", {{"name", "rope"}}}, {"document_mask", true}},
      {{"prior", {{"name", "bam"}, {"init", "normal"}, {"share", true}}},
       {"scale", {{"name", "ssmax"}, {"init_std", 0.5}}}},
      {{"prior", {{{"name", "cable"}}, {{"name", "fire"}}}},
       {"scale", {{"name", "adaptive"}, {"bias", true}}}},
      {{"prior", {{"name", "learned"}, {"positions", 70}}}, {"scale", {{"name", "by_length"}}}}};
  for (size_t i = 0; i < attentions.size(); ++i) {
    const Workplace w;
    Json c = still_run(w);
    c["model"]["attention"] = attentions[i];
    c["model"]["tied"] = i % 2 == 1;
    c["model"]["bias"] = i >= 2;
    INFO(attentions[i].dump());
    REQUIRE(run_config_into(w, c, "first").code == 0);
    export_checkpoint(
        first_checkpoint(w, "first"), w.path("hf"),
        i == 1 ? std::vector<std::string>{"--max-shard-size", "30KB"} : std::vector<std::string>());
    c["seed"] = 8;
    REQUIRE(run_config_into(w, c, "other").code == 0);
    c["init_from"] = {{"folder", w.path("hf")}};
    const Outcome o = run_config_into(w, c, "again");
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("starting from the weights in " + w.path("hf")) != std::string::npos);
    CHECK(o.output.find("warning") == std::string::npos);
    const Json first = read_metrics(w.path("first"))[0], again = read_metrics(w.path("again"))[0];
    CHECK(first["loss"] == again["loss"]);
    CHECK(first["validation_loss"] == again["validation_loss"]);
    const auto model = [&](const std::string& out) {
      return sha256_file(first_checkpoint(w, out) + "/model.safetensors");
    };
    CHECK(model("first") == model("again"));
    // Without the folder, the other seed changes the loss.
    CHECK(read_metrics(w.path("other"))[0]["loss"] != first["loss"]);
    CHECK(model("first") != model("other"));
  }
}

TEST_CASE("GPT-2's folder round trips, and what does not fit it is named as it names it") {
  const Workplace w;
  Json c = still_run(w);
  c["model"]["attention"] = {{"prior", {{"name", "learned"}, {"positions", 70}}}};
  c["model"]["norm"] = {{"kind", "layernorm"}};
  c["model"]["mlp"]["kind"] = "gelu";
  c["model"]["kv_heads"] = c["model"]["heads"];
  c["model"]["bias"] = true;
  REQUIRE(run_config_into(w, c, "first").code == 0);
  export_checkpoint(first_checkpoint(w, "first"), w.path("hf"), {"--max-shard-size", "60KB"});
  REQUIRE(Json::parse(read_text(w.path("hf/config.json")))["model_type"] == "gpt2");
  c["seed"] = 8;
  c["init_from"] = {{"folder", w.path("hf")}};
  const Outcome o = run_config_into(w, c, "again");
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("warning") == std::string::npos);
  CHECK(sha256_file(first_checkpoint(w, "first") + "/model.safetensors") ==
        sha256_file(first_checkpoint(w, "again") + "/model.safetensors"));

  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& words) {
    const Outcome other = run_config_into(w, c, "other", overrides);
    INFO(other.output);
    CHECK(other.code == static_cast<int>(ExitCode::checkpoint));
    CHECK(other.output.find(words) != std::string::npos);
  };
  refused({"model.mlp.hidden=97"},
          "tensor \"transformer.h.0.mlp.c_fc.weight\": expected (97, 64) for "
          "model.layers.0.mlp.up_proj.weight, found (96, 64); change model.mlp.hidden");
  refused({"model.kv_heads=2"},
          "c_attn.weight\": expected (32, 64) for "
          "model.layers.0.self_attn.k_proj.weight, found (64, 64)");
  refused({"model.attention.prior=rope"}, "tensor \"transformer.wpe.weight\": unexpected tensor");
  refused({"model.heads=8", "model.kv_heads=8"}, "config.json: n_head: expected 8");
  refused({"model.mlp.kind=relu"}, "config.json: activation_function: expected \"relu\"");
  Json config = Json::parse(read_text(w.path("hf/config.json")));
  for (const auto& [member, value] :
       {std::pair("n_positions", 71), std::pair("n_embd", 65), std::pair("n_layer", 3)}) {
    Json wrong = config;
    wrong[member] = value;
    std::ofstream(w.path("hf/config.json")) << wrong;
    refused({}, std::string("config.json: ") + member + ": expected ");
  }
}

TEST_CASE("a state tells what the run began with, and a resumed run reads it no more") {
  Exported e;
  REQUIRE(e.next().code == 0);
  const Json expected = {
      {"folder", fs::canonical(e.w.path("hf")).string()},
      {"files", {{"model.safetensors", sha256_file(e.w.path("hf/model.safetensors"))}}}};
  CHECK(open_checkpoint(first_checkpoint(e.w, "next")).state["initialized_from"] == expected);
  CHECK_FALSE(open_checkpoint(first_checkpoint(e.w, "first")).state.contains("initialized_from"));
  fs::remove_all(e.w.path("hf"));
  const Outcome dry = run(
      [&] {
        auto command = bamtrain_command(e.w.path("next.json"), {"train.stop_at=2"});
        command.push_back("--dry-run");
        return command;
      }(),
      threads(1));
  INFO(dry.output);
  CHECK(dry.code == 0);
  const Outcome o = e.next({"train.stop_at=2"});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(open_checkpoint(e.w.path("next/checkpoint-00000002")).state["initialized_from"] ==
        expected);
}

TEST_CASE("of a checkpoint what its run had otherwise is told by the keys, or refused") {
  Exported e;
  const auto from = [&](const std::vector<std::string>& overrides, const std::string& out) {
    std::vector<std::string> all = {"init_from.folder=" + first_checkpoint(e.w, "first")};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return run_config_into(e.w, e.config, out, all);
  };
  const std::string state = first_checkpoint(e.w, "first") + "/state.json: config.";
  const Outcome same = from({"optimizer.lr=0.5", "seed=4"}, "same");
  INFO(same.output);
  CHECK(same.code == 0);
  CHECK(same.output.find("warning") == std::string::npos);

  const Outcome other = from({"model.attention.normalizer=entmax", "model.norm.eps=0.001",
                              "model.attention.prior.theta=5000"},
                             "other");
  INFO(other.output);
  CHECK(other.code == 0);
  for (const char* told : {"model.attention.normalizer.name is \"softmax\", but "
                           "model.attention.normalizer.name of this run is \"entmax\"",
                           "model.attention.prior.theta is 10000.0, but "
                           "model.attention.prior.theta of this run is 5000.0",
                           "model.norm.eps is "}) {
    CHECK(other.output.find("warning: " + state + told) != std::string::npos);
  }
  CHECK(other.output.find("alpha") == std::string::npos);

  const Outcome layers =
      from({"model.attention.prior=[{\"name\":\"rope\",\"theta\":777},\"nope\"]"}, "layers");
  INFO(layers.output);
  CHECK(layers.code == 0);
  for (const char* told : {"model.attention.prior[0].theta is 10000.0, but "
                           "model.attention.prior[0].theta of this run is 777.0",
                           "model.attention.prior[1].name is \"rope\", but "
                           "model.attention.prior[1].name of this run is \"nope\""}) {
    CHECK(layers.output.find("warning: " + state + told) != std::string::npos);
  }

  const Outcome heads = from({"model.heads=2", "model.kv_heads=1"}, "heads");
  INFO(heads.output);
  CHECK(heads.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(heads.output.find(state + "model.heads: expected 2, as in this run, found 4") !=
        std::string::npos);
}

TEST_CASE("a checkpoint that is damaged is not begun with") {
  Exported e;
  const std::string folder = first_checkpoint(e.w, "first"), path = folder + "/model.safetensors";
  std::string bytes = read_text(path);
  bytes[bytes.size() - 10] ^= 0x40;
  std::ofstream(path, std::ios::binary) << bytes;
  const Outcome o = run_config_into(e.w, e.config, "damaged", {"init_from.folder=" + folder});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(o.output.find("SHA-256") != std::string::npos);
}

TEST_CASE("a flipped bit of exported weights does not enter a new run") {
  Exported e;
  const std::string path = e.w.path("hf/model.safetensors");
  const std::string good = read_text(path);
  const WeightsFolder weights = WeightsFolder::open(e.w.path("hf"));
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"}) {
    std::string bytes = good;
    bytes[static_cast<size_t>(weights.tensors().at(name).entry->offset) + 4] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
    e.check_refused({}, {"hf/model.safetensors: tensor \"" + std::string(name) + "\"",
                         "expected SHA-256 ", "found ", "; restore the file from a copy"});
  }
}

TEST_CASE("bf16 weights are read as the values they are") {
  Exported e;
  fs::remove_all(e.w.path("hf"));
  export_checkpoint(first_checkpoint(e.w, "first"), e.w.path("hf"), {"--dtype", "bf16"});
  REQUIRE(e.next().code == 0);
  const WeightsFolder given = WeightsFolder::open(e.w.path("hf"));
  const WeightsFolder used = WeightsFolder::open(first_checkpoint(e.w, "next"));
  CHECK(given.tensors().size() == used.tensors().size());
  for (const auto& [name, place] : given.tensors()) {
    INFO(name);
    REQUIRE(place.entry->dtype == Dtype::bf16);
    std::vector<uint16_t> upper(static_cast<size_t>(place.entry->bytes) / 2);
    place.file->read(*place.entry, upper.data());
    std::vector<uint32_t> bits(upper.size());
    const WeightsFolder::Place found = used.tensors().at(name);
    REQUIRE(found.entry->bytes == static_cast<int64_t>(4 * bits.size()));
    found.file->read(*found.entry, bits.data());
    size_t wrong = 0;
    for (size_t i = 0; i < bits.size(); ++i) wrong += bits[i] != uint32_t{upper[i]} << 16;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a rope model goes on as bam: its weights, and new parameters at their initial values") {
  Exported e;
  const std::vector<std::string> bam = {
      "model.attention.prior={\"name\":\"bam\",\"init\":\"laplace\"}"};
  e.check_refused(bam, {"hf: tensor \"model.layers.0.self_attn.prior.theta_alpha\"",
                        "missing (shape (4))", "; name it in init_from.new"});
  std::vector<std::string> named = bam;
  named.push_back("init_from.new=[\"theta_alpha\",\"theta_beta\"]");
  e.check_refused(named, {"theta_mu", "init_from.new"});
  named.back() = "init_from.new=[\"prior\"]";
  const Outcome o = e.next(named);
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("warning") == std::string::npos);
  const WeightsFolder given = WeightsFolder::open(e.w.path("hf"));
  const WeightsFolder used = WeightsFolder::open(first_checkpoint(e.w, "next"));
  CHECK(used.tensors().size() == given.tensors().size() + 6);
  for (const auto& [name, place] : used.tensors()) {
    INFO(name);
    std::vector<float> values(static_cast<size_t>(place.entry->bytes) / 4);
    place.file->read(*place.entry, values.data());
    if (name.find(".prior.") == std::string::npos) {
      std::vector<float> before(values.size());
      const WeightsFolder::Place from = given.tensors().at(name);
      from.file->read(*from.entry, before.data());
      CHECK(std::memcmp(before.data(), values.data(), values.size() * 4) == 0);
    } else if (name.ends_with("theta_alpha")) {
      // ALiBi's slopes for four heads, as in the initialisation laplace.
      for (int h = 0; h < 4; ++h) CHECK(values[h] == Approx(-2 * (h + 1) * std::log(2.0)));
    }
  }
}

TEST_CASE("a prior and a mix on it are new each on its own") {
  const Workplace w;
  Json c = still_run(w);
  const auto begin = [&](const std::string& prior, const std::string& out) {
    c["model"]["attention"] = {{"prior", Json::parse(prior)}};
    const Outcome o = run_config_into(w, c, out);
    INFO(o.output);
    REQUIRE(o.code == 0);
    export_checkpoint(first_checkpoint(w, out), w.path(out + "-hf"));
  };
  begin(R"({"name": "kerple", "kernel": "power"})", "plain");
  begin(R"({"name": "dape", "base": "alibi", "variant": "concat"})", "mixed");

  // Checks what a run of `prior` with these names in init_from.new reports, from an export and from
  // its checkpoint.
  const auto check = [&](const std::string& from, const std::string& prior,
                         const std::string& names, const std::vector<std::string>& of_export,
                         const std::vector<std::string>& of_checkpoint) {
    for (const bool exported : {true, false}) {
      const std::string folder = exported ? w.path(from + "-hf") : first_checkpoint(w, from);
      c.erase("model");
      c["model"] = still_run(w)["model"];
      c["model"]["attention"] = {{"prior", Json::parse(prior)}};
      const Outcome o =
          run_config_into(w, c, "next", {"init_from.folder=" + folder, "init_from.new=" + names});
      INFO(names << " of " << folder << ": " << o.output);
      CHECK(o.code == 0);
      std::vector<std::string> told;
      for (size_t at = 0; (at = o.output.find("json: ", at)) != std::string::npos;) {
        at += 6;
        told.push_back(o.output.substr(at, o.output.find('\n', at) - at));
      }
      CHECK(told == (exported ? of_export : of_checkpoint));
      fs::remove_all(w.path("next"));
    }
  };
  const std::string kernel = "model.attention.prior.base.kernel of this run is \"logarithmic\"";
  for (const char* names : {R"(["mix"])", R"(["weight1","bias1","weight2","bias2"])"}) {
    check("plain", R"("dape")", names, {"priors[0].kernel is \"power\", but " + kernel},
          {"config.model.attention.prior.kernel is \"power\", but " + kernel});
  }
  const std::string variant = "model.attention.prior.variant of this run is \"concat_residual\"";
  check("mixed", R"("dape")", R"(["r1","r2"])",
        {"priors[0].mix.variant is \"concat\", but " + variant},
        {"config.model.attention.prior.variant is \"concat\", but " + variant});
  c["model"]["attention"] = {{"prior", {{"name", "dape"}, {"base", "kerple"}}}};
  const Outcome both = run_config_into(
      w, c, "both", {"init_from.folder=" + w.path("mixed-hf"), "init_from.new=[\"prior\"]"});
  INFO(both.output);
  CHECK(both.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(both.output.find("remove \"prior\" from init_from.new, or name only the parameters that "
                         "the folder lacks") != std::string::npos);
  check("mixed", R"({"name": "dape", "base": "alibi"})", "[]",
        {"priors[0].mix.variant is \"concat\", but " + variant},
        {"config.model.attention.prior.variant is \"concat\", but " + variant});
}

TEST_CASE("what does not fit is refused: the tensor, both shapes, the key to change") {
  Exported e;
  e.check_refused({"model.vocab=223"},
                  {"model.embed_tokens.weight", "(223, 64)", "(211, 64)", "change model.vocab"});
  e.check_refused({"model.width=32"}, {"(211, 32)", "(211, 64)", "change model.width"});
  e.check_refused({"model.kv_heads=4"}, {"k_proj", "(64, 64)", "(32, 64)", "model.kv_heads"});
  e.check_refused({"model.mlp.hidden=97"}, {"(97, 64)", "(96, 64)", "model.mlp.hidden"});
  e.check_refused({"model.layers=3"}, {"model.layers.2.", "missing (", "change model.layers"});
  e.check_refused({"model.layers=1"},
                  {"model.layers.1.", "unexpected tensor, ", "change model.layers"});
  e.check_refused({"model.tied=true"},
                  {"lm_head.weight", "the values of the embedding", "set model.tied to false"});
  e.check_refused({"model.bias=true"}, {"q_proj.bias", "missing (", "model.bias"});
  e.check_refused({"model.mlp.kind=gelu"}, {"gate_proj", "model.mlp.kind"});
  e.check_refused({R"(model.attention.prior={"name": "dape", "base": "alibi"})"},
                  {".mix.", "init_from.new"});
  e.check_refused({"model.attention.scale.name=ssmax"}, {"scale.s", "init_from.new"});
  e.check_refused({"model.attention.normalizer=entmax", "model.attention.normalizer.learned=true"},
                  {"normalizer.alpha", "init_from.new"});
  e.check_refused({"model.head_dim=8"}, {"q_proj", "(32, 64)", "(64, 64)", "model.head_dim"});
  e.check_refused({"model.norm_position=post"}, {"post_feedforward", "model.norm_position"});
  e.check_refused({"model.norm_position=both"}, {"pre_feedforward", "model.norm_position"});
  e.check_refused({"model.embed_scale=true"}, {"config.json: embed_scale", "expected true",
                                               "found false", "model.embed_scale"});
  // Settings that no shape shows come from the folder's config.json.
  e.check_refused({"model.heads=8", "model.kv_heads=4"},
                  {"config.json: num_attention_heads", "expected 8", "found 4", "model.heads"});
  e.check_refused({"model.mlp.kind=geglu"}, {"config.json: hidden_act", "silu", "model.mlp.kind"});
  e.check_refused({"model.norm.kind=layernorm"}, {"config.json: rms_norm_eps", "model.norm.kind"});
  e.check_refused({"init_from.folder=" + e.w.path("absent")}, {"absent", "no such folder"});
  // Differences in these keys are only warnings.
  const Outcome other = e.next({"model.attention.prior.theta=20000", "model.norm.eps=0.001"});
  INFO(other.output);
  CHECK(other.code == 0);
  CHECK(other.output.find("warning: " + e.w.path("hf/config.json") + ": rope_theta is 10000.0") !=
        std::string::npos);
  CHECK(other.output.find("rms_norm_eps is 1e-05") != std::string::npos);
}

TEST_CASE("a tied head that is stored too begins a head of its own") {
  const std::vector<Json> attentions = {{{"prior", "rope"}}, {{"prior", "bam"}}};
  for (const Json& attention : attentions) {
    INFO(attention.dump());
    const Workplace w;
    Json c = still_run(w);
    c["model"]["attention"] = attention;
    c["model"]["tied"] = true;
    REQUIRE(run_config_into(w, c, "first").code == 0);
    export_checkpoint(first_checkpoint(w, "first"), w.path("hf"));
    REQUIRE(Json::parse(read_text(w.path("hf/config.json")))["tie_word_embeddings"] == true);
    c["init_from"] = {{"folder", w.path("hf")}};
    c["model"]["tied"] = false;
    const auto refused = [&](const std::vector<std::string>& words) {
      const Outcome o = run_config_into(w, c, "refused");
      INFO(o.output);
      CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
      for (const std::string& word : words) CHECK(o.output.find(word) != std::string::npos);
    };
    refused({"lm_head.weight\": missing (shape (211, 64)); change model.tied"});
    const auto store_head = [&](float other) {
      rewrite(w.path("hf"), [other](auto* tensors, auto* memory) {
        std::erase_if(*tensors, [](const NamedTensor& t) { return t.name == "lm_head.weight"; });
        NamedTensor head = named(tensors, "model.embed_tokens.weight");
        const auto* const values = static_cast<const char*>(head.data);
        memory->emplace_back(values, values + 4 * 211 * 64);
        std::memcpy(memory->back().data() + 40, &other, sizeof other);
        head.name = "lm_head.weight";
        head.data = memory->back().data();
        tensors->push_back(head);
      });
    };
    float same = 0;
    rewrite(w.path("hf"), [&same](auto* tensors, auto*) {
      std::memcpy(&same,
                  static_cast<const char*>(named(tensors, "model.embed_tokens.weight").data) + 40,
                  sizeof same);
    });
    store_head(same + 1);
    refused({"lm_head.weight\": expected the values of the embedding, since tie_word_embeddings"});
    store_head(same);
    const Outcome o = run_config_into(w, c, "untied");
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("warning") == std::string::npos);
    CHECK(read_metrics(w.path("untied"))[0]["loss"] == read_metrics(w.path("first"))[0]["loss"]);
  }
}

TEST_CASE("damaged weights are refused before anything is written") {
  Exported e;
  const std::string file = e.w.path("hf/model.safetensors");
  const fs::path kept = e.w.path("kept");
  fs::copy(file, kept);
  const auto with = [&](const Change& change, const std::vector<std::string>& words) {
    fs::copy(kept, file, fs::copy_options::overwrite_existing);
    rewrite(e.w.path("hf"), change);
    e.check_refused({}, words);
  };
  with(
      [](auto* tensors, auto*) {
        std::erase_if(*tensors, [](const NamedTensor& t) { return t.name == "model.norm.weight"; });
      },
      {"model.norm.weight", "missing (shape (64))"});
  with(
      [](auto* tensors, auto* memory) {
        memory->emplace_back(4);
        tensors->push_back({"model.rotary.inv_freq", Dtype::f32, {1}, memory->back().data()});
      },
      {"model.rotary.inv_freq", "no such tensor in a model of type llama", "(1) f32"});
  with(
      [](auto* tensors, auto*) {
        named(tensors, "model.norm.weight").shape = {1, 64};
      },
      {"model.norm.weight", "(64)", "(1, 64)"});
  with([](auto* tensors, auto*) { named(tensors, "model.norm.weight").dtype = Dtype::i32; },
       {"model.norm.weight", "F32, BF16 or F16", "i32"});
  with([](auto* tensors,
          auto*) { static_cast<float*>(named(tensors, "model.norm.weight").data)[5] = NAN; },
       {"model.norm.weight", "finite values", "element 5"});
  with(
      [](auto* tensors, auto* memory) {
        memory->emplace_back(16);
        tensors->push_back(
            {"model.layers.0.self_attn.prior.r1", Dtype::f32, {4}, memory->back().data()});
      },
      {"self_attn.prior.r1", "no such tensor in a model of type llama"});
  // A prior's parameters outside their limits.
  const std::vector<std::string> kerple = {"model.attention.prior=kerple"};
  REQUIRE(run_config_into(e.w, e.config, "kerple", {kerple[0], "init_from.folder="}).code == 0);
  export_checkpoint(first_checkpoint(e.w, "kerple"), e.w.path("hf-kerple"));
  for (const auto& [value, code] : {std::pair(0.01f, 0), std::pair(-3.0f, 5)}) {
    rewrite(e.w.path("hf-kerple"), [value](auto* tensors, auto*) {
      for (const char* layer : {"0", "1"}) {
        for (const char* name : {"r1", "r2"}) {
          const std::string prior = std::string("model.layers.") + layer + ".self_attn.prior.";
          std::fill_n(static_cast<float*>(named(tensors, prior + name).data), 4, value);
        }
      }
    });
    const Outcome o = e.next({kerple[0], "init_from.folder=" + e.w.path("hf-kerple")},
                             "kerple" + std::to_string(code));
    INFO(o.output);
    CHECK(o.code == code);
    CHECK((code == 0) ==
          (o.output.find("model.layers.0.self_attn.prior.r1\": expected values of "
                         "at least 0.01, found -3 at element 0") == std::string::npos));
  }
  // A header with dtype I16.
  fs::copy(kept, file, fs::copy_options::overwrite_existing);
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const size_t at = bytes.find("\"F32\"");
  REQUIRE(at != std::string::npos);
  std::ofstream(file, std::ios::binary) << bytes.replace(at, 5, "\"I16\"");
  e.check_refused({}, {"dtype F64, F32, F16, BF16, I32, U8 or BOOL", "I16", "convert"});
  fs::resize_file(file, 1000);
  e.check_refused({}, {"model.safetensors"});
}
