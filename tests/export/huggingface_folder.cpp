// The exported folder: bitwise exact values, all files or none, and what is refused.

#include "export/huggingface_folder.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "catch.h"
#include "checkpoint/weights_folder.h"
#include "core/durable_file.h"
#include "core/rng.h"
#include "data/files.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "train/support.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;
using namespace testing;

/// A model with random values in place of a trained one.
struct Trained {
  Workplace w;
  RunConfig config;
  ParameterLayout layout;
  std::vector<float> values;
  Checkpoint checkpoint;
  nlohmann::ordered_json resolved = {
      {"model", {{"attention", {{"prior", "p"}, {"scale", "s"}, {"normalizer", "n"}}}}},
      {"optimizer", {}},
      {"schedule", {}},
      {"train", {}}};
  HuggingfaceRequest request;

  explicit Trained(
      const std::string& prior = "bam", const std::string& scale = "ssmax",
      const NormalizerChoice& normalizer = NormalizerChoice(*find_normalizer("softmax")))
      : config(config_of(prior, scale, normalizer)),
        layout(config.model, config.data.sequence_length) {
    lay_out();
    fs::create_directories(w.path("run/checkpoint-00000008"));
    checkpoint = {
        w.path("run/checkpoint-00000008"),
        8,
        {{"tokens", 5000}, {"data", {{"fingerprint", "f"}, {"tokenizer_sha256", nullptr}}}}};
    request.output = w.path("out");
  }

  /// Lays out and fills the parameters again, after a change of the model.
  void lay_out() {
    layout = ParameterLayout(config.model, config.data.sequence_length);
    values.clear();
    const Rng rng(3, "values");
    for (uint64_t i = 0; i < static_cast<uint64_t>(layout.elements()); ++i) {
      values.push_back(static_cast<float>(rng.normal(i)));
    }
  }

  static RunConfig config_of(const std::string& prior, const std::string& scale,
                             const NormalizerChoice& normalizer) {
    RunConfig c;
    c.name = "a name";
    ModelConfig& m = c.model;
    m.vocab = 23;
    m.width = 16;
    m.layers = 2;
    m.heads = m.kv_heads = 4;
    m.mlp.hidden = 12;
    m.attention.prior = PriorChoice(*find_prior(prior));
    m.attention.scale = ScaleChoice(*find_scale(scale));
    m.attention.normalizer = normalizer;
    m.attention.document_mask = true;
    c.data.sequence_length = 20;
    c.data.document_start = 2;
    c.data.train = std::string("nowhere");
    c.train.steps = 10;
    return c;
  }

  void write() {
    const Tensor master_weights(values.data(), Dtype::f32, {layout.elements()});
    write_huggingface_folder(request, checkpoint, config, resolved, layout, master_weights);
  }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(request.output)) {
      found.insert(entry.path().filename().string());
    }
    return found;
  }

  std::string text(const std::string& name) const {
    return testing::read_text(request.output + "/" + name);
  }

  /// Checks that the export has left no file, under any name.
  void check_nothing_left() const {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(w.path(""))) ++entries;
    CHECK(entries == 1);  // the run
  }
};

/// Rounds fp32 to the nearest bf16, ties to even: by the definition, in fp64.
uint16_t nearest_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t below = bits & 0xFFFF0000u, above = below + 0x10000u;
  const double to_below = std::abs(double{x} - double{std::bit_cast<float>(below)});
  const double to_above = std::abs(double{std::bit_cast<float>(above)} - double{x});
  const bool up = to_above < to_below || (to_above == to_below && (below >> 16 & 1) != 0);
  return static_cast<uint16_t>((up ? above : below) >> 16);
}

}  // namespace

TEST_CASE("fp32 is exported to the bit, in one file or in shards") {
  for (const int64_t limit : {int64_t{1} << 40, int64_t{2000}}) {
    Trained t;
    t.request.max_shard_bytes = limit;
    t.write();
    const WeightsFolder weights = WeightsFolder::open(t.request.output);
    CHECK((limit > 2000 ? weights.files().size() == 1 : weights.files().size() > 3));
    CHECK(weights.tensors().size() == t.layout.all().size());
    for (const Parameter& p : t.layout.all()) {
      INFO(p.name);
      const WeightsFolder::Place place = weights.tensors().at(p.name);
      REQUIRE((place.entry->shape == p.shape && place.entry->dtype == Dtype::f32));
      std::vector<float> found(static_cast<size_t>(p.size));
      place.file->read(*place.entry, found.data());
      CHECK(std::memcmp(found.data(), t.values.data() + p.offset, found.size() * 4) == 0);
    }
  }
}

TEST_CASE(
    "bf16 is the nearest value, the even one of two; what attention's logits go through keeps "
    "fp32") {
  NormalizerChoice learned(*find_normalizer("entmax"));
  learned.options.set("learned", true);
  Trained t("cable", "adaptive", learned);
  // Halfway between two neighbours, with an even one below, then above; and just past halfway.
  t.values[0] = std::bit_cast<float>(0x3F808000u);
  t.values[1] = std::bit_cast<float>(0x3F818000u);
  t.values[2] = std::bit_cast<float>(0x3F808001u);
  t.request.rounded = true;
  t.write();
  const WeightsFolder weights = WeightsFolder::open(t.request.output);
  int rounded = 0, kept = 0;
  for (const Parameter& p : t.layout.all()) {
    INFO(p.name);
    const WeightsFolder::Place place = weights.tensors().at(p.name);
    const float* values = t.values.data() + p.offset;
    if (contains(p.name, ".prior.") || contains(p.name, ".scale.") ||
        contains(p.name, ".normalizer.")) {
      ++kept;
      REQUIRE(place.entry->dtype == Dtype::f32);
      std::vector<float> found(static_cast<size_t>(p.size));
      place.file->read(*place.entry, found.data());
      CHECK(std::memcmp(found.data(), values, found.size() * 4) == 0);
      continue;
    }
    ++rounded;
    REQUIRE(place.entry->dtype == Dtype::bf16);
    std::vector<uint16_t> found(static_cast<size_t>(p.size));
    place.file->read(*place.entry, found.data());
    int64_t wrong = 0;
    for (int64_t i = 0; i < p.size; ++i) wrong += found[i] != nearest_bf16(values[i]);
    CHECK(wrong == 0);
  }
  CHECK((rounded > 10 && kept == 10));
  CHECK(contains(t.text("config.json"), "\"torch_dtype\": \"bfloat16\""));
}

TEST_CASE("a Llama's folder has no code, any other's has") {
  Trained llama("rope", "none"),
      other("rope", "none", NormalizerChoice(*find_normalizer("entmax")));
  llama.write();
  CHECK(llama.names() == std::set<std::string>{"README.md", "config.json", "generation_config.json",
                                               "model.safetensors"});
  other.write();
  CHECK(other.names() == std::set<std::string>{"README.md", "config.json",
                                               "configuration_bamtrain.py",
                                               "generation_config.json", "model.safetensors",
                                               "modeling_bamtrain.py"});
  CHECK(nlohmann::json::parse(other.text("generation_config.json")) ==
        nlohmann::json::parse(R"({"bos_token_id": 2, "eos_token_id": [2], "pad_token_id": 2})"));
  CHECK(contains(llama.text("README.md"), "one document per row"));
  CHECK(contains(other.text("README.md"), "trust_remote_code=True"));
}

TEST_CASE("GPT-2's folder has no code, and its matrices are inputs by outputs, to the bit") {
  Trained t("learned", "none");
  t.config.model.norm.kind = NormKind::layernorm;
  t.config.model.mlp.kind = MlpKind::gelu;
  t.config.model.bias = true;
  t.lay_out();
  t.write();
  CHECK(t.names() == std::set<std::string>{"README.md", "config.json", "generation_config.json",
                                           "model.safetensors"});
  const WeightsFolder weights = WeightsFolder::open(t.request.output);
  // wte, wpe, a head, the last norm; per layer 2 norms and 4 linear maps.
  CHECK(weights.tensors().size() == 3 + 2 + 2 * 12);
  const auto values_of = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const WeightsFolder::Place place = weights.tensors().at(name);
    CHECK((place.entry->shape == shape && place.entry->dtype == Dtype::f32));
    std::vector<float> values(static_cast<size_t>(place.entry->bytes) / 4);
    place.file->read(*place.entry, values.data());
    return values;
  };
  const auto ours = [&](const std::string& name) {
    const Parameter& p = *t.layout.find(name);
    return t.values.data() + p.offset;
  };
  const std::vector<float> qkv = values_of("transformer.h.1.attn.c_attn.weight", {16, 48});
  const std::vector<float> bias = values_of("transformer.h.1.attn.c_attn.bias", {48});
  const std::vector<float> down = values_of("transformer.h.0.mlp.c_proj.weight", {12, 16});
  int64_t wrong = 0;
  for (int64_t o = 0; o < 48; ++o) {
    const std::string name = std::string("model.layers.1.self_attn.") + "qkv"[o / 16] + "_proj.";
    for (int64_t i = 0; i < 16; ++i) {
      wrong += qkv[static_cast<size_t>(i * 48 + o)] != ours(name + "weight")[o % 16 * 16 + i];
    }
    wrong += bias[static_cast<size_t>(o)] != ours(name + "bias")[o % 16];
  }
  for (int64_t o = 0; o < 16; ++o) {
    for (int64_t i = 0; i < 12; ++i) {
      wrong += down[static_cast<size_t>(i * 16 + o)] !=
               ours("model.layers.0.mlp.down_proj.weight")[o * 12 + i];
    }
  }
  CHECK(wrong == 0);
  CHECK(values_of("transformer.wpe.weight", {20, 16})[7] ==
        ours("model.embed_positions.weight")[7]);
  const auto config = nlohmann::json::parse(t.text("config.json"));
  CHECK(config["architectures"] == nlohmann::json::array({"GPT2LMHeadModel"}));
  CHECK_FALSE(contains(t.text("README.md"), "trust_remote_code"));
}

TEST_CASE("the card says that nothing is known of the licence, and names the tokenizer") {
  Trained t;
  t.write();
  CHECK(t.text("README.md").starts_with("---\nlibrary_name: transformers\nlicense: unknown\n"));
  CHECK(contains(t.text("README.md"), "| licence of the weights | unknown: "));
  CHECK(contains(t.text("README.md"), "| tokenizer | not in this folder |"));
}

TEST_CASE("a name stays text in the card") {
  Trained t;
  t.config.name = "<img src=x onerror=alert(1)>\n[a](b)\xE2\x80\xAE";
  t.write();
  CHECK(contains(t.text("README.md"),
                 "\n# \\<img src=x onerror=alert(1)> \\[a](b)\xEF\xBF\xBD\n\nA decoder-only"));
}

TEST_CASE("the card has the numbers of the run's files, and none where they have none") {
  Trained t;
  t.write();
  CHECK(contains(t.text("README.md"), "# a name\n"));
  CHECK(contains(t.text("README.md"), "| steps | 8 of 10 |"));
  CHECK(contains(t.text("README.md"), "| tokens | 5,000 |"));
  CHECK(contains(t.text("README.md"), "| normalizer | softmax |"));
  CHECK_FALSE(contains(t.text("README.md"), "validation"));
  CHECK_FALSE(contains(t.text("README.md"), "Perplexity"));

  fs::remove_all(t.request.output);
  std::ofstream(t.w.path("run/metrics.jsonl")) << R"({"step":4,"validation_loss":3.5})"
                                               << "\n"
                                               << R"({"step":8,"validation_loss":2.25})"
                                               << "\n"
                                               << R"({"step":12,"validation_lo)";
  std::ofstream(t.w.path("run/perplexity.json"))
      << R"({"step":8,"training_length":32,"data_fingerprint":"f","last_tokens":10,
            "windows":[{"length":20,"perplexity":12.3456,"loss":2.51328,"tokens":400}],
            "last":[{"length":40,"perplexity":9.5,"loss":2.2513,"tokens":100}]})";
  t.write();
  CHECK(contains(t.text("README.md"), "| validation loss | 2.2500 (perplexity 9.49) |"));
  CHECK(contains(t.text("README.md"), "| 20 | 12.346 | 2.5133 | 400 |"));
  CHECK(contains(t.text("README.md"), "The last 10 tokens"));
  CHECK(contains(t.text("README.md"), "| 40 | 9.500 | 2.2513 | 100 |"));

  // With standard errors where the files have them; null means unknown.
  fs::remove_all(t.request.output);
  std::ofstream(t.w.path("run/metrics.jsonl"))
      << R"({"step":8,"validation_loss":2.25,"validation_loss_error":0.01})"
      << "\n";
  std::ofstream(t.w.path("run/perplexity.json"))
      << R"({"step":8,"training_length":32,"data_fingerprint":"f","last_tokens":10,
            "windows":[{"length":20,"perplexity":12.3456,"perplexity_error":0.5,"loss":2.51328,
                        "loss_error":0.0405,"tokens":400}],
            "last":[{"length":40,"perplexity":9.5,"perplexity_error":null,"loss":2.2513,
                     "loss_error":null,"tokens":100}]})";
  t.write();
  CHECK(contains(t.text("README.md"),
                 "| validation loss | 2.2500 \u00b1 0.0100 (perplexity 9.49 \u00b1 0.09) |"));
  CHECK(contains(t.text("README.md"), "| 20 | 12.346 \u00b1 0.500 | 2.5133 \u00b1 0.0405 | 400 |"));
  CHECK(contains(t.text("README.md"), "| 40 | 9.500 | 2.2513 | 100 |"));

  // Independent of how the checkpoint's path is written.
  const fs::path here = fs::current_path();
  const std::string absolute = t.checkpoint.folder;
  for (const auto& [from, name] :
       {std::pair("run", "checkpoint-00000008"), std::pair("run", "checkpoint-00000008/"),
        std::pair("run/checkpoint-00000008", "."),
        std::pair("run/checkpoint-00000008", "../checkpoint-00000008"),
        std::pair(".", "run/checkpoint-00000008")}) {
    fs::remove_all(t.request.output);
    t.checkpoint.folder = name;
    fs::current_path(t.w.path(from));
    t.write();
    fs::current_path(here);
    INFO(name << " in " << from);
    CHECK(contains(t.text("README.md"), "| validation loss | 2.2500 \u00b1 0.0100 (perplexity "));
    CHECK(contains(t.text("README.md"), "| 40 | 9.500 | 2.2513 | 100 |"));
  }
  t.checkpoint.folder = absolute;

  // Results with another prior, scale or normalizer are not this model's.
  t.request.as_trained = false;
  std::ofstream(t.w.path("run/perplexity.json"))
      << R"({"step":8,"training_length":32,"data_fingerprint":"f",
            "prior":"p","scale":"s","normalizer":"n",
            "windows":[{"length":20,"perplexity":12.3456,"loss":2.51328,"tokens":400}]})";
  const nlohmann::ordered_json own = t.resolved["model"]["attention"];
  for (const char* part : {"prior", "scale", "normalizer"}) {
    fs::remove_all(t.request.output);
    t.resolved["model"]["attention"] = own;
    t.resolved["model"]["attention"][part] = "another";
    t.write();
    INFO(part);
    CHECK_FALSE(contains(t.text("README.md"), "validation"));
    CHECK_FALSE(contains(t.text("README.md"), "Perplexity"));
  }
  t.request.as_trained = true;

  // Results of another step are not this checkpoint's.
  fs::remove_all(t.request.output);
  t.checkpoint.step = 7;
  t.write();
  CHECK_FALSE(contains(t.text("README.md"), "validation"));
  CHECK_FALSE(contains(t.text("README.md"), "Perplexity"));
}

TEST_CASE("a card takes of files that others may have written what a run writes, and no more") {
  Trained t;
  const std::string metrics = t.w.path("run/metrics.jsonl");
  const std::string perplexity = t.w.path("run/perplexity.json");
  const auto refused = [&](const std::string& place) {
    try {
      t.write();
    } catch (const Error& e) {
      INFO(e.what());
      CHECK(e.code() == ExitCode::io);
      CHECK(contains(e.what(), place));
      CHECK_FALSE(e.remedy().empty());
      return true;
    }
    return false;
  };
  SECTION("a line of brackets, which would nest as deep") {
    std::ofstream(metrics) << "{\"validation_loss\":" << std::string(1 << 20, '[') << "\n";
    CHECK(refused(metrics));
  }
  SECTION("a pipe, which nobody writes to") {
    REQUIRE(mkfifo(metrics.c_str(), 0600) == 0);
    CHECK(refused(metrics));
  }
  SECTION("text in the place of a number of tokens") {
    std::ofstream(perplexity) << R"({"step":8,"training_length":32,"data_fingerprint":"f",
        "last_tokens":"<b>10</b>","last":[{"length":40,"perplexity":9.5}]})";
    CHECK(refused("last_tokens"));
  }
  SECTION("more lengths than a table shows") {
    std::string rows;
    for (int length = 1; length <= 60000; ++length) {
      rows += fmt::format("{}{{\"length\":{},\"perplexity\":9.5}}", length > 1 ? "," : "", length);
    }
    std::ofstream(perplexity) << R"({"step":8,"training_length":32,"data_fingerprint":"f",)"
                              << "\"windows\":[" << rows << "]}";
    t.write();
    CHECK(contains(t.text("README.md"), "60000 lengths from 1 to 60000"));
    CHECK(t.text("README.md").size() < 10000);
  }
}

TEST_CASE("a folder with content stays as it is; an empty one is taken") {
  Trained t;
  fs::create_directory(t.request.output);
  std::ofstream(t.request.output + "/mine") << "x";
  CHECK(contains(error_of(ExitCode::io, [&] { t.write(); }), "a folder with content"));
  CHECK(t.names() == std::set<std::string>{"mine"});
  fs::remove(t.request.output + "/mine");
  t.write();
  CHECK(t.names().count("model.safetensors") == 1);
}

TEST_CASE("an export that fails at any operation leaves nothing, or is there whole") {
  static int countdown = 0;
  int failures = 0;
  for (int at = 1;; ++at) {
    Trained t;
    t.request.max_shard_bytes = 3000;
    countdown = at;
    set_file_fault([](FileOp, const std::string&, const std::string&) {
      return --countdown == 0 ? ENOSPC : 0;
    });
    const std::string message = error_or_none(ExitCode::io, [&] { t.write(); });
    const bool reached = countdown <= 0;
    set_file_fault(nullptr);
    INFO(at << ": " << message);
    if (!reached) break;
    ++failures;
    if (!fs::exists(t.request.output)) {
      CHECK(contains(message, "No space left"));
      t.check_nothing_left();
    } else {
      CHECK(WeightsFolder::open(t.request.output).tensors().size() == t.layout.all().size());
    }
  }
  CHECK(failures > 20);
}

TEST_CASE("wherever an export is killed, the next one to the same place leaves nothing else") {
  static int operations = 0, last = 0;
  bool ended = false;
  for (last = 1; !ended; ++last) {
    Trained t;
    t.request.max_shard_bytes = 3000;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      operations = 0;
      set_file_fault([](FileOp, const std::string&, const std::string&) -> int {
        if (++operations == last) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      t.write();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ended = WIFEXITED(status);
    INFO("killed before operation " << last);
    if (fs::exists(t.request.output)) {
      CHECK(contains(error_of(ExitCode::io, [&] { t.write(); }), "a folder with content"));
    } else {
      t.write();
    }
    CHECK(WeightsFolder::open(t.request.output).tensors().size() == t.layout.all().size());
    fs::remove_all(t.request.output);
    t.check_nothing_left();
  }
  CHECK(last > 30);
}

TEST_CASE("documents without a start token and files that are no tokenizer are refused") {
  Trained t;
  t.config.data.document_start.reset();
  CHECK(contains(error_of(ExitCode::config, [&] { t.write(); }), "--document-start"));
  t.request.document_start = 23;
  CHECK(contains(error_of(ExitCode::usage, [&] { t.write(); }), "below model.vocab = 23"));
  t.request.document_start = 22;
  t.write();
  CHECK(contains(t.text("config.json"), "\"document_start\": 22"));
  fs::remove_all(t.request.output);
  t.request.tokenizer = t.w.path("absent.model");
  CHECK(contains(error_of(ExitCode::io, [&] { t.write(); }), "absent.model"));
  std::ofstream(t.w.path("run/not.model")) << "no model";
  t.request.tokenizer = t.w.path("run/not.model");
  CHECK(contains(error_of(ExitCode::data, [&] { t.write(); }), "not.model"));
  t.check_nothing_left();
}

}  // namespace bamtrain
