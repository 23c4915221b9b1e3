// `bamtrain inspect` as a user calls it: what it writes and refuses.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "report/page.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A checkpoint of a bam + ssmax model on shards without a tokenizer.
struct Trained {
  Workplace w;
  nlohmann::json config = small_run(w);
  std::string checkpoint;

  explicit Trained(int layers = 2) {
    config["model"]["layers"] = layers;
    config["train"]["stop_at"] = 2;
    config["out_dir"] = w.path("out");
    const Outcome o = run(bamtrain_command(write_config(w, "run.json", config)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    checkpoint = w.path("out/checkpoint-00000002");
  }
  Outcome inspect(const Words& more) const {
    Words all = {bamtrain_program(), "inspect", "--checkpoint", checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, threads(1));
  }
  void check_refused(const Words& more, ExitCode code, const std::string& message) const {
    Words with = more;
    with.insert(with.end(), {"--output", w.path("refused")});
    const Outcome o = inspect(with);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(o.output.find(message) != std::string::npos);
    CHECK_FALSE(fs::exists(w.path("refused.html")));
    CHECK_FALSE(fs::exists(w.path("refused.safetensors")));
  }
};

std::string ids(int count) {
  std::string out = "1";
  for (int i = 1; i < count; ++i) out += "," + std::to_string(2 + i * 5 % 20);
  return out;
}

}  // namespace

TEST_CASE("inspect writes a page and its numbers, the same ones each time") {
  const Trained t;
  const std::string output = t.w.path("found");
  const Outcome o = t.inspect({"--ids", ids(40), "--output", output});
  INFO(o.output);
  REQUIRE(o.code == 0);
  const int64_t layers = t.config["model"]["layers"], heads = t.config["model"]["heads"];
  CHECK(o.output.find("layer  head   entropy   support  centroid   largest") != std::string::npos);
  CHECK(o.output.find("page " + output + ".html") != std::string::npos);
  const std::string page = read_text(output + ".html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  const auto count = [&page](const std::string& text) {
    int64_t n = 0;
    for (size_t at = 0; (at = page.find(text, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count("<figure class=\"map\">") == 2 * layers * heads);  // weights and biases
  CHECK(count("<use href=\"#token-rows\"/>") == 2 * layers * heads);
  CHECK(count("<text class=\"name end\"") == 40);  // once for all maps
  // Weights, biases and the last query, by layer.
  CHECK(count("<details open><summary>layer 0 ") == 3);
  CHECK(count("<details><summary>layer ") == 3 * (layers - 1));
  // A first query's only weight is 1 in every layer. Biases differ, so a switch changes their
  // scale.
  CHECK(count("<input type=\"checkbox\"") == 1);
  CHECK(count("id=\"own-bias\"") == 1);
  // Under softmax, query i has i + 1 keys.
  CHECK(count("Constant, so not drawn: nonzero keys: 20.5.") == 1);
  for (const char* heading :
       {"Weights", "Centroids", "The last query", "Biases of this prompt",
        "Scales by the number of keys", "Depth", "bam: theta_alpha against theta_beta"}) {
    INFO(heading);
    CHECK(page.find(heading) != std::string::npos);
  }
  CHECK(page.find("http://") == page.find("http://www.w3.org"));  // no external resources
  const SafetensorsFile file = SafetensorsFile::open(output + ".safetensors");
  const SafetensorsFile::Entry* const weights = file.find("layers.0.weights");
  REQUIRE(weights);
  CHECK(weights->shape == std::vector<int64_t>{heads, 40, 40});
  for (const char* name :
       {"ids", "losses", "layers.1.logits", "layers.1.scores", "layers.1.bias",
        "layers.1.last.logits", "layers.1.entropy", "layers.1.scale", "layers.1.fit.power",
        "depth.gradient", "depth.token_gradient", "depth.repeated", "collapse.softmax.constant",
        "collapse.entmax 1.75.random", "layers.1.centroid", "layers.1.reached",
        "layers.1.log10_paths"}) {
    INFO(name);
    CHECK(file.find(name) != nullptr);
  }
  CHECK(file.metadata().at("block") == "1");
  const std::string tensors = read_text(output + ".safetensors");
  REQUIRE(t.inspect({"--ids", ids(40), "--output", output}).code == 0);
  CHECK(read_text(output + ".safetensors") == tensors);
  CHECK(read_text(output + ".html") == page);
  REQUIRE(t.inspect({"--ids", ids(40), "--layers", "1", "--output", output}).code == 0);
  CHECK(SafetensorsFile::open(output + ".safetensors").find("layers.0.weights") == nullptr);
}

TEST_CASE(
    "inspect ends with the code of losses that are no numbers, when it has written the page") {
  Trained t;
  t.checkpoint = with_constant(t.checkpoint, t.w.path("spoiled"), "lm_head.weight", 3e38f);
  const std::string output = t.w.path("found");
  const Outcome o = t.inspect({"--ids", ids(40), "--output", output});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::nonfinite));
  CHECK(o.output.find(t.checkpoint +
                      ": expected finite losses of the prompt, found NaN or infinity at token 0") !=
        std::string::npos);
  CHECK(fs::exists(output + ".html"));
  CHECK(fs::exists(output + ".safetensors"));
}

TEST_CASE("paths are counted through layers that follow each other alone") {
  const Trained t(3);
  const auto paths = [&](const std::string& layers, const char* layer) {
    const std::string output = t.w.path("look");
    REQUIRE(t.inspect({"--ids", ids(9), "--layers", layers, "--output", output}).code == 0);
    const SafetensorsFile file = SafetensorsFile::open(output + ".safetensors");
    const auto* const entry = file.find("layers." + std::string(layer) + ".log10_paths");
    REQUIRE(entry != nullptr);
    float x = 0;
    file.read(*entry, &x);
    return x;
  };
  CHECK(paths("0,2", "2") == paths("2", "2"));
  CHECK(paths("0,1,2", "2") > paths("2", "2"));
  CHECK(paths("1,2", "2") > paths("2", "2"));
}

TEST_CASE("inspect refuses prompts, layers and files before it computes anything") {
  const Trained t;
  t.check_refused({}, ExitCode::usage,
                  "missing prompt; give one of --prompt, --prompt-file and --ids");
  t.check_refused({"--ids", "1", "--prompt", "x"}, ExitCode::usage,
                  "more than one prompt; give one of");
  t.check_refused({"--prompt", "some text"}, ExitCode::usage, "--tokenizer");
  t.check_refused({"--prompt", ""}, ExitCode::usage, "--prompt: empty text; give some text");
  t.check_refused({"--prompt-file", t.w.path("none")}, ExitCode::io, "none");
  t.check_refused({"--ids", ""}, ExitCode::usage, "--ids");
  t.check_refused({"--ids", "1,,2"}, ExitCode::usage, "--ids");
  t.check_refused({"--ids", "1,100000"}, ExitCode::usage, "found 100000");
  t.check_refused({"--ids", "1,2", "--layers", "7"}, ExitCode::usage, "layers of the model");
  t.check_refused({"--ids", ids(4097)}, ExitCode::usage, "at most 4096 tokens");
  // inspect does not overwrite a model.
  const std::string model = t.checkpoint + "/model";
  const std::string before = read_text(model + ".safetensors");
  const Outcome o = t.inspect({"--ids", "1,2", "--output", model});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::usage));
  CHECK(read_text(model + ".safetensors") == before);
  // Nor the page of a run.
  std::ofstream(t.w.path("run.html")) << html_page("report", "a run", "");
  const Outcome page = t.inspect({"--ids", "1,2", "--output", t.w.path("run")});
  INFO(page.output);
  CHECK(page.code == static_cast<int>(ExitCode::usage));
  CHECK(page.output.find("is not a file of bamtrain inspect") != std::string::npos);
  CHECK_FALSE(fs::exists(t.w.path("run.safetensors")));
}

TEST_CASE("inspect refuses what would not fit into memory") {
  const Trained t;
  Words command = {"sh",
                   "-c",
                   "ulimit -v 115000; exec \"$@\"",
                   "sh",
                   bamtrain_program(),
                   "inspect",
                   "--checkpoint",
                   t.checkpoint,
                   "--ids",
                   ids(4096),
                   "--output",
                   t.w.path("large")};
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::device));
  CHECK(o.output.find("memory of the model, its attention and the page (--ids): ") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(t.w.path("large.safetensors")));
}
