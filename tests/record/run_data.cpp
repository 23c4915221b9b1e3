// The shards of a run whose checkpoints are read from another folder, or after a move.

#include "record/run_data.h"

#include <filesystem>

#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

/// Runs a program in `folder`.
Outcome run_in(const std::string& folder, std::vector<std::string> command) {
  command[0] = fs::absolute(command[0]).string();
  command.insert(command.begin(), {"env", "-C", folder});
  return run(command, threads(1));
}

}  // namespace

TEST_CASE("a run's data is found relative to its folder, where nothing is at its path") {
  const Workplace w;
  fs::create_directories(w.path("moved/out/run"));
  fs::create_directories(w.path("moved/data/train"));
  write_bytes(w.path("moved/data/val-1.bin"), "");
  struct Case {
    std::string train, val, out_dir;
    bool found;
  };
  for (const Case& c :
       {Case{"data/train", "data/val-*.bin", "out/run", true},
        Case{"./data/train/", "data/val-1.bin", "./out//run/", true},
        Case{"/former/data/train", "/former/data/val-?.bin", "/former/out/run", true},
        Case{"../data/train", "../data/val-1.bin", "../out/run", true},
        Case{"data/train", "data/val-1.bin", "../out/run", false},
        Case{"data/train", "data/val-1.bin", "/former/out/run", false},
        Case{"data/absent", "data/val-2*.bin", "out/run", false}}) {
    INFO(c.train << " and " << c.out_dir);
    RunConfig config;
    config.data.train = DataSources({{c.train, 1}, {w.path("moved/data"), 2}});
    config.data.val = c.val;
    config.out_dir = c.out_dir;
    const auto moved = find_run_data(&config, w.path("moved/out/run"));
    if (!c.found) {
      CHECK(moved.empty());
      CHECK((config.data.train.list[0].path == c.train && config.data.val == c.val));
      continue;
    }
    REQUIRE(moved.size() == 2);
    CHECK((moved[0].key == "data.train" && moved[0].before == c.train));
    CHECK((moved[1].key == "data.val" && moved[1].before == c.val));
    CHECK(moved[1].now == config.data.val);
    CHECK(fs::equivalent(config.data.train.list[0].path, w.path("moved/data/train")));
    CHECK(fs::path(config.data.val).parent_path() == w.path("moved/data"));
    CHECK(fs::path(config.data.val).filename() == fs::path(c.val).filename());
    CHECK(config.data.train.list[1].path == w.path("moved/data"));
  }
}

TEST_CASE("shards and tokenizer are found by eval and generate and export from another folder") {
  TextRun text;
  const Workplace& w = text.w;
  text.config["data"]["train"] = "data/train";
  text.config["data"]["val"] = "data/val";
  text.config["out_dir"] = "runs/one";
  text.config["train"]["stop_at"] = 1;
  const std::string config = write_config(w, "run.json", text.config);
  const std::string program = bamtrain_program();
  const Outcome trained = run_in(w.path("."), {program, "--config", config});
  INFO(trained.output);
  REQUIRE(trained.code == 0);
  fs::create_directory(w.path("elsewhere"));
  const std::string checkpoint = "runs/one/checkpoint-00000001";
  const std::vector<std::vector<std::string>> commands = {
      {"eval", "--lengths", "64", "--max-tokens", "640"},
      {"generate", "--prompt", "a", "--max-tokens", "2"},
      {"export", "--output", w.path("exported")}};
  const auto outcome = [&](const std::string& folder, const std::vector<std::string>& command,
                           const std::string& of) {
    std::vector<std::string> words = {program, command[0], "--checkpoint", of};
    words.insert(words.end(), command.begin() + 1, command.end());
    return run_in(folder, words);
  };
  for (const auto& command : commands) {
    const Outcome here = outcome(w.path("."), command, checkpoint);
    fs::remove_all(w.path("exported"));
    const Outcome there = outcome(w.path("elsewhere"), command, w.path(checkpoint));
    INFO(command[0] << ": " << there.output);
    CHECK((here.code == 0 && there.code == 0));
    const std::string note =
        "found next to the run: data.val: data/val -> " + w.path("data/val") + "\n";
    CHECK(there.output.find(note) != std::string::npos);
    CHECK(here.output.find("found next to the run") == std::string::npos);
  }
  CHECK(read_text(w.path("exported/tokenizer.model")) == read_text(text.tokenizer));

  // Everything is moved, and paths were absolute.
  fs::create_directory(w.path("new"));
  for (const char* name : {"runs", "data", "tokenizer.model"}) {
    fs::rename(w.path(name), w.path(std::string("new/") + name));
  }
  const Outcome moved = outcome(w.path("elsewhere"), commands[1], w.path("new/" + checkpoint));
  INFO(moved.output);
  CHECK(moved.code == 0);
}
