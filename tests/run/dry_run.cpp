// What --dry-run prints, compared with figures computed here. It must leave no files.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "catch.h"
#include "priors/registry.h"
#include "run/train.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// The number after `label` in the output.
double figure(const std::string& output, const std::string& label) {
  std::smatch match;
  const std::string literal = std::regex_replace(label, std::regex("\\+"), "\\+");
  INFO(label << " in\n" << output);
  REQUIRE(std::regex_search(output, match, std::regex("\\n  " + literal + " +([0-9.,e+]+)")));
  return std::stod(std::regex_replace(match[1].str(), std::regex(","), ""));
}

Outcome dry_run(const std::string& config) {
  auto command = bamtrain_command(config);
  command.push_back("--dry-run");
  return run(command, threads(1));
}

}  // namespace

TEST_CASE("attention's operations are six products for every pair of a query and a visible key") {
  ModelConfig c;
  c.layers = 3;
  c.width = 40;
  c.heads = 5;
  PriorChoice local(*find_prior("rope_local"));
  local.options.set("window", 2.0);
  const PriorChoice nope(*find_prior("nope"));
  for (int64_t T : {1, 2, 7, 64}) {
    for (int64_t window : {0, 1, 3, 64, 100}) {
      INFO("T " << T << ", window " << window);
      c.attention.window = window;
      const auto flops_of_layer = [&](int64_t window) {
        int64_t pairs = 0;
        for (int64_t i = 0; i < T; ++i) {
          for (int64_t j = 0; j <= i; ++j) pairs += window == 0 || i - j < window;
        }
        return 6.0 * 2 * 40 * static_cast<double>(pairs) / static_cast<double>(T);
      };
      c.attention.prior = nope;
      CHECK(attention_flops_per_token(c, T) == Approx(3 * flops_of_layer(window)));
      c.attention.prior = PriorConfig({nope, local, nope});
      CHECK(attention_flops_per_token(c, T) ==
            Approx(2 * flops_of_layer(window) + flops_of_layer(2)));
    }
  }
}

TEST_CASE("--dry-run counts parameters, tokens and FLOPs as one does by hand, and makes nothing") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string config = write_config(w, "run.json", c);
  const Outcome o = dry_run(config);
  INFO(o.output);
  REQUIRE(o.code == 0);

  const double V = 211, D = 64, L = 2, heads = 4, kv_heads = 2, T = 64, hidden = 96;
  const double head_dim = D / heads;
  const double matrices =  // per layer: q and o, k and v, the three of SwiGLU
      2 * D * D + 2 * D * kv_heads * head_dim + 3 * D * hidden;
  const double norms = L * 2 * D + D;
  const double head = V * D;
  CHECK(figure(o.output, "embedding") == V * D);
  CHECK(figure(o.output, "attention") == L * (matrices - 3 * D * hidden));
  CHECK(figure(o.output, "mlp") == L * 3 * D * hidden);
  CHECK(figure(o.output, "norms") == norms);
  CHECK(figure(o.output, "head") == head);
  // BAM's alpha, beta and mu, and SSMax's s: one of each per head and layer.
  CHECK(figure(o.output, "prior") == L * heads * 3);
  CHECK(figure(o.output, "scale") == L * heads);

  CHECK(figure(o.output, "training") == 40000);
  CHECK(figure(o.output, "validation") == (5000 - 1) / 64);
  CHECK(figure(o.output, "tokens") == 1024);
  CHECK(figure(o.output, "sequences") == 1024 / T);

  // One multiply and one add per weight, once forward and twice backward. Attention: q k and p v
  // for each position with (T + 1) / 2 keys on average.
  const double products = 3 * 2 * (L * matrices + head);
  const double attention = 3 * 2 * 2 * L * heads * head_dim * (T + 1) / 2;
  CHECK(figure(o.output, "FLOPs per token") == Approx(products + attention).epsilon(1e-3));

  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("--dry-run counts a tied embedding once, as parameters and not as work") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const Outcome untied = dry_run(write_config(w, "untied.json", c));
  c["model"]["tied"] = true;
  const Outcome tied = dry_run(write_config(w, "tied.json", c));
  INFO(tied.output);
  REQUIRE(tied.code == 0);
  CHECK(figure(tied.output, "embedding") == 211 * 64);
  CHECK(figure(untied.output, "head") == 211 * 64);
  // With a tied embedding, only the memory table has a head.
  CHECK(tied.output.find("\n  head ") > tied.output.find("\na step\n"));
  CHECK(figure(tied.output, "FLOPs per token") == figure(untied.output, "FLOPs per token"));
}

TEST_CASE("memory that no machine has is refused with the key that asks for it") {
  const Workplace w;
  const std::string prior = "model.attention.prior", scale = "model.attention.scale";
  const std::string rope =
      R"({"name": "rope", "randomized": true, "randomized_length": 1000000000})";
  const std::string by_length = R"({"name": "by_length", "lengths": 1000000000})";
  const struct {
    std::string prior, scale, keys;
  } cases[] = {
      {R"({"name": "learned", "positions": 1000000000})", R"({"name": "none"})",
       prior + ".positions"},
      {rope, R"({"name": "none"})", prior + ".randomized_length"},
      {R"({"name": "nope"})", by_length, scale + ".lengths"},
      {R"([{"name": "nope"}, )" + rope + "]", by_length,
       prior + "[1].randomized_length, " + scale + ".lengths"},
  };
  for (const auto& x : cases) {
    nlohmann::json c = small_run(w);
    c["model"]["attention"]["prior"] = nlohmann::json::parse(x.prior);
    c["model"]["attention"]["scale"] = nlohmann::json::parse(x.scale);
    c["model"]["width"] = 65536;  // any of the tables takes terabytes
    c["model"]["heads"] = c["model"]["kv_heads"] = 64;
    const std::string config = write_config(w, "run.json", c);
    for (const Outcome& o : {dry_run(config), run(bamtrain_command(config), threads(1))}) {
      INFO(o.output);
      CHECK(o.code == 9);
      CHECK(o.output.find("memory plan: expected at most") != std::string::npos);
      CHECK(o.output.find("train.recompute, or lower " + x.keys + "\n") != std::string::npos);
    }
    // The tables above show what to lower.
    const Outcome o = dry_run(config);
    CHECK(figure(o.output, "weights") > 1e5);
    CHECK(figure(o.output, "validation") > 0);
  }
}

TEST_CASE("--dry-run refuses what the run would refuse, with the same code") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  std::filesystem::remove_all(w.path("val"));
  const Outcome o = dry_run(write_config(w, "run.json", c));
  INFO(o.output);
  CHECK(o.code == 4);
  CHECK(o.output.find(w.path("val")) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("--dry-run tells what a run needs without its data, and then what they lack") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"lengths", {16}}};
  const Outcome with_data = dry_run(write_config(w, "run.json", c));
  REQUIRE(with_data.code == 0);
  std::filesystem::remove_all(w.path("train"));
  std::filesystem::remove_all(w.path("val"));
  const Outcome o = dry_run(w.path("run.json"));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  for (const std::string label : {"embedding", "FLOPs per token", "gradients", "at least"}) {
    CHECK(o.output.find("  " + label) != std::string::npos);
  }
  CHECK(figure(o.output, "final evaluation") == figure(with_data.output, "final evaluation"));
  const size_t time = o.output.find("\ntime\n"), error = o.output.find("bamtrain: ");
  REQUIRE(error != std::string::npos);
  CHECK(time < error);
}

TEST_CASE("--dry-run says how often the data are seen, and durations in years") {
  const Workplace w;
  nlohmann::json c = small_run(w);  // 40,000 tokens: 624 windows of 64, and one target
  const auto line = [](const std::string& output, const std::string& label) {
    const size_t at = output.find("\n  " + label);
    REQUIRE(at != std::string::npos);
    return output.substr(at + 1, output.find('\n', at + 1) - at - 1);
  };
  Outcome o = dry_run(write_config(w, "run.json", c));
  REQUIRE(o.code == 0);
  INFO(o.output);
  // 8 steps of 16 sequences.
  CHECK(line(o.output, "training").find("40,000 tokens in 1 shards, 0.205 epochs") !=
        std::string::npos);
  c["train"]["steps"] = 936000;
  c["train"]["stop_at"] = 0;
  o = dry_run(write_config(w, "run.json", c));
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(line(o.output, "training").find("40,000 tokens in 1 shards, 24000 epochs") !=
        std::string::npos);
  c["train"]["steps"] = 1000000000000;
  o = dry_run(write_config(w, "run.json", c));
  INFO(o.output);
  CHECK(
      std::regex_search(line(o.output, "at least"), std::regex(" [0-9.e+]+ years for 10+ steps")));
}

TEST_CASE("--dry-run checks what the run would go on from, and goes on to the rest") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string config = write_config(w, "run.json", c);
  const auto with = [&](const std::vector<std::string>& overrides) {
    auto command = bamtrain_command(config, overrides);
    command.push_back("--dry-run");
    return run(command, threads(1));
  };
  const auto refused = [&](const std::vector<std::string>& overrides, int code,
                           const std::string& text) {
    const Outcome o = with(overrides);
    INFO(o.output);
    CHECK(o.code == code);
    CHECK(o.output.find(text) != std::string::npos);
  };
  refused({"checkpoint.resume=nowhere"}, 5,
          "checkpoint.resume: no such folder: nowhere; give auto, never, or the folder of a "
          "checkpoint or a run");
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=3"}), threads(1)).code == 0);
  const std::string checkpoint = w.path("out/checkpoint-00000003");
  const Outcome o = with({});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("resumes from " + checkpoint + " at step 3\n") != std::string::npos);
  CHECK(o.output.find(" for 5 steps on 1 process at that rate") != std::string::npos);
  refused({"checkpoint.resume=never"}, 3, "an empty or new out_dir");
  refused({"seed=8"}, 3,
          "seed: expected the same values as in " + checkpoint + ", found changes (seed: ");
  refused({"train.steps=2", "schedule.warmup_steps=1"}, 3, "train.steps: expected at least the 3");
  // One flipped bit in the parameters, in the run's own checkpoint and in one to start from.
  std::filesystem::copy(checkpoint, w.path("source"));
  for (const std::string& folder : {checkpoint, w.path("source")}) {
    std::string bytes = read_text(folder + "/model.safetensors");
    bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
    std::ofstream(folder + "/model.safetensors", std::ios::binary) << bytes;
  }
  refused({}, 5, checkpoint + "/model.safetensors");
  refused({"out_dir=" + w.path("other"), "init_from.folder=" + w.path("source")}, 5,
          w.path("source") + "/model.safetensors");
  CHECK_FALSE(std::filesystem::exists(w.path("other")));
}

TEST_CASE("--dry-run refuses a folder that cannot be made") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  SECTION("below a file") {
    std::ofstream(w.path("there")) << "";
    c["out_dir"] = w.path("there/out");
  }
  SECTION("below a link to nothing") {
    std::filesystem::create_symlink("nowhere", w.path("there"));
    c["out_dir"] = w.path("there/out");
  }
  const Outcome o = dry_run(write_config(w, "run.json", c));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("change out_dir") != std::string::npos);
}

TEST_CASE("--dry-run plans a bf16 run on a processor that does not multiply in bf16") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["precision"] = "bf16";
  auto command = bamtrain_command(write_config(w, "run.json", c));
  command.push_back("--dry-run");
  const Outcome o = run(command, {"OMP_NUM_THREADS=1", "ONEDNN_MAX_CPU_ISA=AVX2"});
  INFO(o.output);
  CHECK(o.code == 9);
  CHECK(figure(o.output, "gradients") > 0);
  CHECK(figure(o.output, "training") == 40000);
  CHECK(o.output.find("  unknown  ") != std::string::npos);
  CHECK(o.output.find("bamtrain: matmul: expected a processor that oneDNN supports for bf16") !=
        std::string::npos);
}

TEST_CASE("the plan of a run of very many layers is within 25 MiB of what it takes") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["model"]["vocab"] = 600;
  c["model"]["layers"] = 4096;
  c["model"]["width"] = c["model"]["mlp"]["hidden"] = 16;
  c["model"]["heads"] = 2;
  c["model"]["kv_heads"] = 1;
  c["model"]["attention"] = nlohmann::json::object();
  c["data"] = {{"train", w.path("train")}, {"val", ""}, {"sequence_length", 32}};
  c["train"] = {{"steps", 1}, {"sequences_per_step", 2}, {"micro_batch", 2}};
  c["optimizer"] = {{"lr", 1e-3}};
  c.erase("schedule");
  c["checkpoint"] = {{"every", 0}};
  // VmHWM measured for such runs with one thread.
  struct Measured {
    const char* prior;
    double mebibytes;
  };
  for (const Measured& m : {Measured{"rope", 415}, Measured{"alibi", 415}, Measured{"bam", 446},
                            Measured{"kerple", 444}, Measured{"fire", 529}}) {
    c["model"]["attention"]["prior"] = {{"name", m.prior}};
    const Outcome o = dry_run(write_config(w, "run.json", c));
    INFO(o.output);
    REQUIRE(o.code == 0);
    double planned = figure(o.output, "total");
    for (const char* const row : {"+ program", "+ tensor names", "+ read-ahead", "+ report"}) {
      const std::string begin = std::string("  ") + row + " ";
      if (o.output.find(begin) != std::string::npos) planned += figure(o.output, row);
    }
    CHECK(planned == Approx(m.mebibytes).margin(25));
  }
}
