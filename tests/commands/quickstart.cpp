// scripts/quickstart.sh on a user's text, without a network: setup.sh and build.sh are replaced by
// stubs, and the model is smaller.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string source_path(const std::string& name) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  return std::string(source ? source : ".") + "/" + name;
}

/// A checkout with the script and its config, in which nothing needs to be installed or built.
class Checkout {
 public:
  Checkout() {
    fs::create_directories(w_.path("scripts"));
    fs::create_directories(w_.path("configs"));
    for (const char* script : {"scripts/quickstart.sh", "scripts/gpu_architectures.sh"}) {
      fs::copy(source_path(script), w_.path("scripts"));
    }
    for (const char* script : {"setup.sh", "build.sh"}) {
      const std::string path = w_.path("scripts/") + script;
      write_text(path, "#!/bin/sh\necho \"called: " + std::string(script) + " $*\"\n");
      fs::permissions(path, fs::perms::owner_all);
    }
    auto config = nlohmann::json::parse(read_text(source_path("configs/quickstart.json")));
    config["model"]["width"] = 64;
    config["model"]["layers"] = 1;
    config["train"]["steps"] = 2;
    config["train"]["tokens_per_step"] = 1024;
    config["eval"] = {{"lengths", {64, 256}}, {"tokens", 512}};
    write_text(w_.path("configs/quickstart.json"), config.dump());
  }

  std::string path(const std::string& name) const { return w_.path(name); }

  /// Puts a command with this name first in the PATH.
  void fake(const std::string& name, const std::string& script) const {
    fs::create_directories(path("bin"));
    write_text(path("bin/" + name), "#!/bin/sh\n" + script);
    fs::permissions(path("bin/" + name), fs::perms::owner_all);
  }

  /// Runs up to the build, in a folder without a build. Returns "called: build.sh ARGUMENTS".
  std::string build_call() const {
    const Outcome o = run({"sh", "-c",
                           "cd \"$0\" && PATH=\"$PWD/bin:$PATH\" BUILD=\"$PWD/none\" "
                           "bash scripts/quickstart.sh --text a.txt",
                           path(".")});
    INFO(o.output);
    const size_t at = o.output.find("called: build.sh");
    REQUIRE(at != std::string::npos);
    return o.output.substr(at, o.output.find('\n', at) - at);
  }

  /// Calls the script in the folder of the texts, as users do.
  Outcome quickstart(const std::string& arguments) const {
    const char* build = std::getenv("BAMTRAIN_BUILD");
    Environment environment = threads(1);
    environment.push_back("BUILD=" + fs::absolute(build ? build : "build").string());
    return run({"sh", "-c", "cd \"$0\" && bash scripts/quickstart.sh " + arguments, path(".")},
               environment);
  }

 private:
  Workplace w_;
};

/// English-like text without accents: lines of words from a vocabulary of about 3,000, documents
/// between blank lines. `width`: characters per line.
std::string prose(uint64_t seed, size_t bytes, size_t width) {
  const Rng rng(seed, "quickstart text");
  const std::vector<std::string> syllables = {"an", "ber", "co", "dal", "en",  "fir", "gon", "hu",
                                              "is", "jo",  "ka", "lem", "mor", "ni",  "or"};
  uint64_t n = 0;
  const auto syllable = [&] { return syllables[rng.below(n++, syllables.size())]; };
  std::string text, line;
  while (text.size() < bytes) {
    std::string word = syllable() + syllable();
    if (rng.below(n++, 2) == 0) word += syllable();
    line += (line.empty() ? "" : " ") + word;
    if (line.size() < width) continue;
    text += line + (rng.below(n++, 8) == 0 ? ".\n\n" : "\n");
    line.clear();
  }
  return text;
}

void require_refusal(const Outcome& o, int code, const std::string& part) {
  INFO(o.output);
  CHECK(o.code == code);
  CHECK(o.output.find(part) != std::string::npos);
  CHECK(o.output.find("called: ") == std::string::npos);
}

}  // namespace

TEST_CASE("quickstart refuses what it cannot train on before it installs or builds anything") {
  const Checkout c;
  write_text(c.path("a.txt"), prose(1, 600'000, 80));
  write_text(c.path("b.txt"), "short\n");
  require_refusal(c.quickstart("a.txt"), 2, "usage: ");
  require_refusal(c.quickstart("--text"), 2, "usage: ");
  require_refusal(c.quickstart("--text a.txt none.txt"), 6,
                  c.path("none.txt") + ": no such file; check the name");
  require_refusal(c.quickstart("--text a.txt configs"), 6,
                  c.path("configs") + ": is a folder; name the text files in it");
  require_refusal(c.quickstart("--text a.txt b.txt"), 4,
                  "--text: expected at least 1,000,000 bytes");
  CHECK_FALSE(fs::exists(c.path("out")));
}

TEST_CASE(
    "quickstart takes a user's text to a model and its perplexities, and reuses what it made") {
  const Checkout c;
  const std::map<std::string, std::string> texts = {
      {"000", prose(1, 900'000, 80)},
      {"001", prose(2, 300'000, 200'000)}};  // lines longer than a part
  write_text(c.path("a.txt"), texts.at("000"));
  write_text(c.path("b.txt"), texts.at("001"));
  const Outcome first = c.quickstart("--text a.txt \"$PWD/b.txt\"");
  INFO(first.output);
  REQUIRE(first.code == 0);
  CHECK(first.output.find("called: setup.sh \n") != std::string::npos);
  CHECK(first.output.find("called: build.sh \n") != std::string::npos);

  // The parts, joined in order, are the text.
  std::map<std::string, std::string> pieces;  // by name
  for (const auto& entry : fs::directory_iterator(c.path("out/quickstart/text"))) {
    pieces[entry.path().filename().string()] = read_text(entry.path().string());
  }
  std::map<std::string, std::string> joined;
  for (const auto& [name, text] : pieces) {
    CHECK(text.size() <= 65536);
    joined[name.substr(0, 3)] += text;
  }
  CHECK((joined == texts));

  // Each part is a document of one of the two sets.
  const std::string data = c.path("out/quickstart/data/");
  const Manifest train = read_manifest(data + "train/manifest.json");
  const Manifest val = read_manifest(data + "val/manifest.json");
  CHECK(train.documents + val.documents == static_cast<int64_t>(pieces.size()));
  CHECK(val.documents >= 1);
  CHECK(train.vocab == 4096);

  for (const char* run : {"bam-ssmax", "rope"}) {
    const std::string folder = c.path("out/quickstart/") + run;
    const auto result = nlohmann::json::parse(read_text(folder + "/perplexity.json"));
    CHECK(result["name"] == run);
    CHECK(result["scale"]["name"] == (std::string(run) == "rope" ? "none" : "ssmax"));
    REQUIRE(result["windows"].size() == 2);
    CHECK(result["windows"][1]["length"] == 256);
    CHECK(fs::exists(folder + "/report.html"));
  }
  CHECK(fs::exists(c.path("out/quickstart/report.html")));
  const size_t plot = first.output.find(" tokens against length\n");
  REQUIRE(plot != std::string::npos);
  CHECK(first.output.find(" a bam-ssmax\n", plot) != std::string::npos);
  CHECK(first.output.find(" b rope\n", plot) != std::string::npos);
  CHECK(first.output.find("\nreport out/quickstart/report.html\n", plot) != std::string::npos);
  CHECK(first.output.find("to continue the training") != std::string::npos);

  const std::string tokenizer = sha256_file(c.path("out/quickstart/tokenizer.model"));
  const Outcome second = c.quickstart("--text a.txt b.txt");
  INFO(second.output);
  CHECK(second.code == 0);
  for (const char* step : {"collecting text", "training a tokenizer", "writing token shards"}) {
    CHECK(first.output.find(step) != std::string::npos);
    CHECK(second.output.find(step) == std::string::npos);
  }
  CHECK(second.output.find("resuming from") != std::string::npos);
  CHECK(sha256_file(c.path("out/quickstart/tokenizer.model")) == tokenizer);

  const Outcome other = c.quickstart("--text b.txt a.txt");
  INFO(other.output);
  CHECK(other.code == 4);
  CHECK(other.output.find("out/quickstart: made from another text; move this folder elsewhere") !=
        std::string::npos);
}

TEST_CASE("quickstart builds for the GPUs that are here, and without CUDA where there is none") {
  const Checkout c;
  write_text(c.path("a.txt"), prose(1, 1'000'000, 80));
  c.fake("nvcc", "[ \"$*\" = --list-gpu-arch ] && printf 'compute_%s\\n' 80 86 89 90 100\n");
  const auto with_gpus = [&](const std::string& answer) {
    c.fake("nvidia-smi", "printf '" + answer + "'\n");
    return c.build_call();
  };
  CHECK(with_gpus("9.0\\n9.0\\n") == "called: build.sh -Dgpu_architectures=90");
  CHECK(with_gpus("9.0\\n8.9\\n10.0\\n8.9\\n") == "called: build.sh -Dgpu_architectures=89,90,100");
  // A GPU that the backend does not support; a failing driver; no driver.
  CHECK(with_gpus("7.5\\n") == "called: build.sh -Dcuda=disabled");
  CHECK(with_gpus("NVIDIA-SMI has failed\\n") == "called: build.sh -Dcuda=disabled");
  c.fake("nvidia-smi", "exit 127\n");
  CHECK(c.build_call() == "called: build.sh -Dcuda=disabled");
  // A GPU that nvcc does not know yet runs the PTX of the default.
  CHECK(with_gpus("12.1\\n") == "called: build.sh -Dgpu_architectures=80,86,90");
}

TEST_CASE("a build tells now and then how far it is, and all that compilers say") {
  const Checkout c;
  fs::copy(source_path("scripts/build.sh"), c.path("scripts"),
           fs::copy_options::overwrite_existing);
  c.fake("meson", "mkdir -p \"$2\"\n");
  const auto build = [&](const std::string& end) {
    c.fake("ninja",
           "echo \"ninja: Entering directory\"; printf '%s\\n' '[1/300] Compiling a' "
           "'[2/300] Compiling b' 'b.cpp:1: warning' " +
               end);
    return run(
        {"sh", "-c", "cd \"$0\" && PATH=\"$PWD/bin:$PATH\" bash scripts/build.sh", c.path(".")});
  };
  const Outcome good = build("'[300/300] Linking c'");
  CHECK(good.code == 0);
  CHECK(good.output == "[1/300] Compiling a\nb.cpp:1: warning\n[300/300] Linking c\n");
  const Outcome bad = build("'FAILED: b'; exit 3");
  CHECK(bad.code == 3);
  CHECK(bad.output == "[1/300] Compiling a\nb.cpp:1: warning\nFAILED: b\n");
}
