// The tokenizer goes with the data and with the run.

#include "record/run_tokenizer.h"

#include <filesystem>

#include "core/error.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "record/run_text.h"
#include "tools/killed_process.h"
#include "tools/older_set.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Folders with a tokenizer, manifests that name it, and no shards.
struct Folders {
  Workplace w;
  std::string model = trained_model(llama_settings()), sha256 = sha256_hex(model);
  RunConfig c;
  Words told;

  Folders() {
    for (const char* name : {"data/train", "data/val", "out"}) {
      fs::create_directories(w.path(name));
    }
    c.model.vocab = 512;
    c.data.train = DataSources(w.path("data/train"));
    c.data.val = w.path("data/val");
    c.out_dir = w.path("out");
  }
  /// Writes the manifest of a set; "" names no file.
  void name(const std::string& set, const std::string& file) const {
    Manifest m;
    m.tokenizer_file = file;
    m.tokenizer_sha256 = sha256;
    m.vocab = 500;
    write_manifest(w.path(set + "/manifest.json"), m);
  }
  void put(const std::string& path) const { write_bytes(w.path(path), model); }
  std::string found() const { return tokenizer_path({"--tokenizer", "", sha256, c.out_dir}, c); }
  void keep() {
    keep_tokenizer(c, sha256, [this](const std::string& text) { told.push_back(text); });
  }
};

std::string other_model() {
  auto settings = llama_settings();
  settings["vocab_size"] = "400";
  return trained_model(settings);
}

}  // namespace

TEST_CASE("the tokenizer of a run is its folder's, then the manifests', then one near the shards") {
  Folders f;
  f.put("near.model");
  CHECK(f.found() == f.w.path("near.model"));
  f.put("data/val/named.model");
  f.name("data/val", "named.model");
  CHECK(f.found() == f.w.path("data/val/named.model"));
  f.put("data/train/named.model");
  f.name("data/train", "named.model");
  CHECK(f.found() == f.w.path("data/train/named.model"));
  f.put("out/any name");
  CHECK(f.found() == f.w.path("out/any name"));
  const std::string given = f.w.path("given");
  CHECK(tokenizer_path({"--tokenizer", given, f.sha256, f.c.out_dir}, f.c) == given);

  write_bytes(f.w.path("out/any name"), other_model());
  CHECK(f.found() == f.w.path("data/train/named.model"));
  fs::remove(f.w.path("data/train/named.model"));
  CHECK(f.found() == f.w.path("data/val/named.model"));
  // What a manifest names is checked as it is used.
  write_bytes(f.w.path("data/val/named.model"), other_model());
  const std::string message = error_of(ExitCode::data, [&] {
    open_tokenizer({"--tokenizer", "", f.sha256, f.c.out_dir}, f.c);
  });
  CHECK(contains(message, "named.model: expected the model's tokenizer, SHA-256 " + f.sha256));
  fs::remove(f.w.path("data/val/named.model"));
  CHECK(f.found() == f.w.path("near.model"));
  fs::remove(f.w.path("near.model"));
  const std::string nowhere = error_of(ExitCode::data, [&] { f.found(); });
  for (const char* folder : {"out", "data/train", "data/val"}) {
    CHECK(contains(nowhere, f.w.path(folder)));
  }
}

TEST_CASE("a run's folder gets the tokenizer once, and an equal file stays untouched") {
  Folders f;
  f.put("data/train/t.model");
  f.name("data/train", "t.model");
  f.keep();
  const std::string copy = f.w.path("out/t.model");
  CHECK(read_text(copy) == f.model);
  const auto written = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(copy, written);
  f.keep();
  CHECK(fs::last_write_time(copy) == written);
  // Also under another name.
  fs::rename(copy, f.w.path("out/renamed"));
  f.keep();
  CHECK_FALSE(fs::exists(copy));
  CHECK(f.told.empty());
}

TEST_CASE("wherever a process is killed as it copies the tokenizer, the next one completes it") {
  Folders f;
  f.put("data/train/t.model");
  f.name("data/train", "t.model");
  const std::string copy = f.w.path("out/t.model");
  bool died = true;
  for (int n = 0; died; ++n) {
    INFO("killed before operation " << n);
    fs::remove(copy);
    died = dies_before(n, [&] { f.keep(); });
    const bool is_whole = !fs::exists(copy) || read_text(copy) == f.model;
    CHECK(is_whole);
    f.keep();
    CHECK(read_text(copy) == f.model);
    CHECK(names_in(f.c.out_dir) == Words{"t.model"});
  }
}

TEST_CASE("a run keeps the tokenizer of shards whose manifest does not name its file") {
  Folders f;
  f.name("data/train", "");
  f.put("t.model");
  f.keep();
  CHECK(read_text(f.w.path("out/t.model")) == f.model);
}

TEST_CASE("a run without a tokenizer's file goes on, and says what will need one") {
  Folders f;
  f.name("data/train", "t.model");
  f.keep();
  REQUIRE(f.told.size() == 1);
  CHECK(contains(f.told[0], "tokenizer: no file of the tokenizer with SHA-256 " + f.sha256));
  CHECK(contains(f.told[0], "; put it in " + f.c.out_dir));
  CHECK(fs::is_empty(f.c.out_dir));
}

TEST_CASE("a run refuses another file under the tokenizer's name, and names of its own files") {
  Folders f;
  f.put("data/train/t.model");
  f.name("data/train", "t.model");
  write_bytes(f.w.path("out/t.model"), "mine");
  CHECK(contains(error_of(ExitCode::io, [&] { f.keep(); }),
                 f.w.path("out/t.model") + ": expected no such file, or the tokenizer"));
  CHECK(read_text(f.w.path("out/t.model")) == "mine");
  fs::remove(f.w.path("out/t.model"));
  for (const char* name :
       {"results.json", "metrics.jsonl", "config.json", "stop", "checkpoint-00000001"}) {
    f.put(std::string("data/train/") + name);
    f.name("data/train", name);
    f.keep();
    CHECK_FALSE(fs::exists(f.w.path(std::string("out/") + name)));  // the run's own file
    CHECK(read_text(f.w.path(std::string("out/tokenizer-") + name)) == f.model);
    f.keep();  // its SHA-256 finds it
    fs::remove_all(f.c.out_dir);
    fs::create_directories(f.c.out_dir);
  }
}

TEST_CASE("a damaged tokenizer next to the shards is not copied to a run") {
  Folders f;
  write_bytes(f.w.path("data/train/t.model"), f.model + "x");
  f.name("data/train", "t.model");
  CHECK(contains(error_of(ExitCode::data, [&] { f.keep(); }),
                 "t.model: expected the tokenizer with SHA-256 " + f.sha256));
  CHECK(fs::is_empty(f.c.out_dir));
}

TEST_CASE("no command after a run asks for the tokenizer, wherever its folder goes") {
  TextRun text;
  const Workplace& w = text.w;
  SECTION("shards with the tokenizer's file") {}
  SECTION("shards of before, with it above their folders") {
    make_older(w.path("data/train"));
    make_older(w.path("data/val"), 1);
  }
  text.config["sample"] = {{"prompts", {"The old sailor"}}, {"max_tokens", 4}};
  text.train(1);
  CHECK(sha256_file(w.path("out/tokenizer.model")) == sha256_file(text.tokenizer));
  fs::create_directory(w.path("elsewhere"));
  fs::rename(w.path("out"), w.path("elsewhere/run"));
  for (const char* name : {"data", "tokenizer.model"}) fs::remove_all(w.path(name));
  write_bytes(w.path("lines.jsonl"), R"({"context": "Her ", "continuation": "brother"})");
  for (const Words& command : std::vector<Words>{
           {"generate", "--prompt", "Her", "--max-tokens", "2"},
           {"export", "--document-start", "1", "--output", w.path("exported")},
           {"inspect", "--prompt", "Her brother", "--output", w.path("inspected")},
           {"eval", "--task", "requests", "--task-set", "file=" + w.path("lines.jsonl")}}) {
    Words words = {bamtrain_program(), command[0], "--checkpoint",
                   w.path("elsewhere/run/checkpoint-00000001")};
    words.insert(words.end(), command.begin() + 1, command.end());
    const Outcome o = run(words, threads(1));
    INFO(command[0] << ": " << o.output);
    CHECK(o.code == 0);
  }
}

TEST_CASE(
    "a run that resumes takes its own tokenizer, and another file there ends it before a step") {
  TextRun text;
  const Workplace& w = text.w;
  text.config["sample"] = {{"prompts", {"The old sailor"}}, {"max_tokens", 4}};
  text.train(1);
  const std::string copy = w.path("out/tokenizer.model");
  const auto written = fs::last_write_time(copy);
  for (const char* name : {"data/train/tokenizer.model", "data/val/tokenizer.model"}) {
    fs::remove(w.path(name));
  }
  fs::create_directory(w.path("away"));
  fs::rename(text.tokenizer, w.path("away/spare"));
  text.train(2);
  CHECK(fs::last_write_time(copy) == written);

  fs::copy(copy, w.path("data/train"));
  write_bytes(copy, "mine");
  text.config["train"]["stop_at"] = 3;
  const Outcome o = run(bamtrain_command(write_config(w, "out.json", text.config)), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK(contains(o.output, copy + ": expected no such file, or the tokenizer with SHA-256 "));
  CHECK_FALSE(fs::exists(w.path("out/checkpoint-00000003")));
  CHECK(read_text(copy) == "mine");
}
