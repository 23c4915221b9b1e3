// What a run refuses, with which exit code, and what it leaves behind.

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "data/shard.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

void require_error(const Outcome& o, ExitCode code, const std::vector<std::string>& words) {
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  for (const std::string& word : words) {
    INFO("expected in the message: " << word);
    CHECK(o.output.find(word) != std::string::npos);
  }
}

void flip_byte(const std::string& path, std::streamoff at) {
  std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const char old = static_cast<char>(f.get());
  f.seekp(at);
  f.put(static_cast<char>(old ^ 1));
  REQUIRE(f.good());
}

/// Names of folders in a run's folder, including hidden ones: checkpoints and what they leave.
std::vector<std::string> folders_in(const std::string& out_dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out_dir)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a non-finite loss stops before anything changes, names step and windows, exits with 7") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["optimizer"]["lr"] = 1e30;
  c["optimizer"]["clip"] = 0;
  c["checkpoint"]["every"] = 1;
  c["checkpoint"]["keep"] = 100;
  const Outcome o = run_config(w, c);
  require_error(o, ExitCode::nonfinite,
                {"expected a finite loss", "found loss ", "windows", ": lower optimizer.lr"});
  const size_t at = o.output.find("bamtrain: step ");
  REQUIRE(at != std::string::npos);
  const int step = std::stoi(o.output.substr(at + 15));
  REQUIRE(step > 1);
  char name[64];
  std::snprintf(name, sizeof name, "out/checkpoint-%08d", step - 1);
  CHECK(std::filesystem::exists(w.path(name)));
  std::snprintf(name, sizeof name, "out/checkpoint-%08d", step);
  CHECK_FALSE(std::filesystem::exists(w.path(name)));
}

TEST_CASE("bad shards are refused before training starts") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  SECTION("missing") {
    c["data"]["train"] = w.path("nowhere");
    require_error(run_config(w, c), ExitCode::data,
                  {"nowhere", "; check the path, or make shards with `bamdata tokenize`"});
  }
  SECTION("truncated") {
    std::filesystem::resize_file(w.path("train/000.bin"), 40001);
    require_error(run_config(w, c), ExitCode::data,
                  {"000.bin", "expected", "found", "; copy or make the shard again"});
  }
  SECTION("token id past the vocabulary") {
    c["model"]["vocab"] = 100;
    require_error(run_config(w, c), ExitCode::data, {"000.bin", "100", "; "});
  }
  SECTION("documents masked without a document start") {
    c["data"].erase("document_start");
    require_error(run_config(w, c), ExitCode::config,
                  {"data.document_start", "; --set data.document_start="});
  }
  CHECK_FALSE(std::filesystem::exists(w.path("out/checkpoint-00000004")));
}

TEST_CASE("tokens_per_step that does not divide and lanes that do not fit are refused") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  require_error(run_config(w, c, {"train.tokens_per_step=1000"}), ExitCode::config,
                {"train.tokens_per_step", "; use 896 or 1024, or change train.micro_batch"});
  require_error(run_config(w, c, {"train.lanes=16"}), ExitCode::config,
                {"train.lanes", "; use 8, or 0 for a power of two up to 8"});
}

TEST_CASE("cuda is refused in a build without it, and where there is no GPU") {
  const Workplace w;
#ifdef BAMTRAIN_CUDA
  const std::vector<std::string> words = {"CUDA: no usable GPU: ", "; install NVIDIA's driver ("};
#else
  const std::vector<std::string> words = {"; build it with -Dcuda=enabled, or set device to auto"};
#endif
  require_error(run_config(w, small_run(w), {"device=cuda"}), ExitCode::device, words);
}

TEST_CASE("resuming refuses a changed model, other data and another tokenizer") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  write_training_manifest(w, 'a');
  REQUIRE(run_config(w, c, {"train.stop_at=4"}).code == 0);
  SECTION("a changed key, unless allowed") {
    require_error(run_config(w, c, {"optimizer.lr=0.001"}), ExitCode::config,
                  {"optimizer.lr", "; set them back, name them in checkpoint.allow_change, or "});
    CHECK(run_config(w, c, {"optimizer.lr=0.001", "checkpoint.allow_change=[\"optimizer.lr\"]"})
              .code == 0);
  }
  SECTION("other shapes") {
    for (const char* change :
         {"model.width=128", "model.mlp.hidden=32", "model.layers=1", "model.bias=true"}) {
      const Outcome o = run_config(w, c, {change});
      require_error(o, ExitCode::config,
                    {std::string(change).substr(0, std::string(change).find('=')),
                     "checkpoint.allow_change cannot help", "such as optimizer.lr"});
      CHECK(o.output.find("name them in checkpoint.allow_change") == std::string::npos);
    }
    // The parameters still fit, but the function differs: the user must decide.
    require_error(run_config(w, c, {"model.norm.eps=0.001"}), ExitCode::config,
                  {"model.norm.eps", "name them in checkpoint.allow_change"});
  }
  SECTION("parameters that the checkpoint has not") {
    require_error(run_config(w, c,
                             {"model.attention.normalizer={\"name\":\"entmax\",\"learned\":true}",
                              "checkpoint.allow_change=[\"model.attention.normalizer\"]"}),
                  ExitCode::checkpoint,
                  {"normalizer.alpha", "missing (",
                   "or start a new run from these weights, with init_from.folder"});
  }
  SECTION("keys that may change") {
    CHECK(run_config(w, c, {"log.every=2", "eval.every=3", "name=other"}).code == 0);
  }
  SECTION("another tokenizer") {
    write_training_manifest(w, 'b');
    require_error(run_config(w, c), ExitCode::data,
                  {"tokenizer", std::string(64, 'a'), "; tokenize the text with"});
  }
  SECTION("other data") {
    write_shard(w.path("train/001.bin"), 1000, 211, 9);
    std::filesystem::remove(w.path("train/manifest.json"));
    require_error(run_config(w, c), ExitCode::data,
                  {"fingerprint", "; set data.train back, or add "});
  }
  SECTION("never") {
    require_error(
        run({bamtrain_program(), "--config", write_config(w, "run.json", c), "--resume", "never"}),
        ExitCode::config, {"checkpoint.resume", "never", "; choose another out_dir"});
  }
  SECTION("a folder whose name is no text") {
    require_error(
        run({bamtrain_program(), "--config", write_config(w, "run.json", c), "--resume", "a\xff"}),
        ExitCode::usage, {"--resume: not valid UTF-8; "});
  }
}

TEST_CASE("a damaged newest checkpoint is named in a warning and the one before it is used") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  REQUIRE(run_config(w, c).code == 0);
  const std::string good = digest(w.path("out/checkpoint-00000008"));
  flip_byte(w.path("out/checkpoint-00000008/model.safetensors"), 5000);
  const Outcome o = run_config(w, c);
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("warning") != std::string::npos);
  CHECK(o.output.find("checkpoint-00000008") != std::string::npos);
  CHECK(o.output.find("resuming from " + w.path("out/checkpoint-00000004")) != std::string::npos);
  CHECK(digest(w.path("out/checkpoint-00000008")) == good);
}

TEST_CASE("a folder to resume from begins a run, and the same command goes on with it") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  REQUIRE(run_config(w, c).code == 0);
  const std::string whole = digest(w.path("out/checkpoint-00000008"));
  const std::string start = w.path("out/checkpoint-00000004");
  require_error(run_config(w, c, {"checkpoint.resume=" + start}), ExitCode::config,
                {"checkpoint.resume", "checkpoint-00000008", "; choose another out_dir"});
  CHECK(digest(w.path("out/checkpoint-00000008")) == whole);
  c["out_dir"] = w.path("other");
  REQUIRE(run_config(w, c, {"checkpoint.resume=" + start, "train.stop_at=6"}).code == 0);
  const Outcome o = run_config(w, c, {"checkpoint.resume=" + start});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("resuming from " + w.path("other/checkpoint-00000006")) != std::string::npos);
  CHECK(digest(w.path("other/checkpoint-00000008")) == whole);
}

TEST_CASE("parameters that are not finite are never saved") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["checkpoint"]["every"] = 1;
  REQUIRE(run_config(w, c, {"train.stop_at=1"}).code == 0);
  const std::string good = digest(w.path("out/checkpoint-00000001"));
  require_error(
      run_config(w, c, {"optimizer.lr=1e39", "checkpoint.allow_change=[\"optimizer.lr\"]"}),
      ExitCode::nonfinite, {"step 2", "finite parameters", "; lower optimizer.lr"});
  CHECK(folders_in(w.path("out")) == std::vector<std::string>{"checkpoint-00000001"});
  CHECK(digest(w.path("out/checkpoint-00000001")) == good);
}

TEST_CASE("a run that fails says from where it goes on, and no checkpoint that is not there") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["optimizer"]["lr"] = 1e39;  // parameters are not finite after one step
  c["checkpoint"]["every"] = 1;
  require_error(run_config(w, c), ExitCode::nonfinite,
                {"step 1", "lower optimizer.lr, and start again: no checkpoint was saved yet"});
  c["optimizer"]["lr"] = 3e-3;
  REQUIRE(run_config(w, c, {"train.stop_at=1"}).code == 0);
  require_error(
      run_config(w, c, {"optimizer.lr=1e39", "checkpoint.allow_change=[\"optimizer.lr\"]"}),
      ExitCode::nonfinite,
      {"step 2", "lower optimizer.lr, and resume from " + w.path("out/checkpoint-00000001") +
                     ", which is intact"});
}

TEST_CASE("what the final evaluation will refuse is refused before the first step") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"lengths", {64, 4096}}, {"require_all_lengths", true}};
  require_error(run_config(w, c), ExitCode::data, {"a document of at least 4097 tokens", "; "});
  c["eval"] = {{"lengths", {32}}};
  c["data"].erase("document_start");
  c["model"]["attention"]["document_mask"] = false;
  require_error(run_config(w, c), ExitCode::config,
                {"data.document_start", "; --set data.document_start="});
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("validation shards that cannot be used are refused before the first step") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  SECTION("token id past the vocabulary") {
    write_shard(w.path("val/000.bin"), 5000, 400, 2);
    require_error(run_config(w, c), ExitCode::data, {"val/000.bin", "; "});
  }
  SECTION("another tokenizer") {
    write_training_manifest(w, 'a');
    Manifest m = read_manifest(w.path("train/manifest.json"));
    m.tokenizer_sha256 = std::string(64, 'b');
    m.tokens = m.shards[0].tokens = 5000;
    m.shards[0].sha256 = sha256_file(w.path("val/000.bin"));
    write_manifest(w.path("val/manifest.json"), m);
    require_error(run_config(w, c), ExitCode::data, {"data.val", std::string(64, 'b'), "; "});
  }
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("two runs do not share a folder") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 100000;
  const std::string config = write_config(w, "run.json", c);
  Outcome second;
  const auto intrude = [&](int first) {
    second = run(bamtrain_command(config), threads(1));
    kill(first, SIGUSR1);
  };
  const Outcome first = run_and(bamtrain_command(config), "\n1/100000 loss", intrude, threads(1));
  CHECK(first.code == static_cast<int>(ExitCode::interrupted));
  require_error(second, ExitCode::io,
                {w.path("out"), "in use by the run of process ", "; wait for it to end"});
}

TEST_CASE("processes that rank 0 fails end with its exit code") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  std::filesystem::create_directories(w.path("out/something"));
  const std::string config = write_config(w, "run.json", c);
  for (int i = 0; i < 5; ++i) {
    const Outcome o =
        run(mpirun_command(2, bamtrain_command(config, {"checkpoint.resume=never"})), threads(1));
    require_error(o, ExitCode::config, {"checkpoint.resume", "; choose another out_dir"});
  }
}

TEST_CASE("the data's place cannot change on resume") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  REQUIRE(run_config(w, c, {"train.stop_at=4"}).code == 0);
  require_error(
      run_config(w, c, {"train.tokens_per_step=2048"}), ExitCode::config,
      {"start a new run in another out_dir; train.tokens_per_step cannot change: it determines "
       "the order of the data"});
  require_error(run_config(w, c,
                           {"train.tokens_per_step=2048",
                            "checkpoint.allow_change=[\"train.tokens_per_step\"]"}),
                ExitCode::config, {"train.tokens_per_step", "cannot change"});
}

TEST_CASE("an out_dir that cannot be made is an error of its own, before training") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  std::ofstream(w.path("file")) << "no folder";
  c["out_dir"] = w.path("file/out");
  require_error(run_config(w, c), ExitCode::io,
                {w.path("file") + ": cannot create the folder: File exists; check the folder"});
}

// These runs have checkpoints with 0.4 MB of parameters; the limit is in blocks of 512 bytes.
TEST_CASE("a disk that fills in mid-run ends it with the last good checkpoint intact") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
  const std::string good = digest(w.path("out/checkpoint-00000004"));
  const Outcome o =
      run({"sh", "-c", "ulimit -f 100; exec \"$0\" --config \"$1\"", bamtrain_program(), config},
          threads(2));
  require_error(o, ExitCode::io,
                {"resuming from", "checkpoint-00000008/model.safetensors", "File too large", "; "});
  CHECK(folders_in(w.path("out")) == std::vector<std::string>{"checkpoint-00000004"});
  CHECK(digest(w.path("out/checkpoint-00000004")) == good);
  CHECK(run(bamtrain_command(config), threads(2)).code == 0);
}

TEST_CASE("a folder that vanishes in mid-run is an error at the next checkpoint") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 100000;
  const std::string config = write_config(w, "run.json", c);
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
  const std::string good = digest(w.path("out/checkpoint-00000004"));
  const auto vanish = [&](int) { std::filesystem::rename(w.path("out"), w.path("elsewhere")); };
  const Outcome o = run_and(bamtrain_command(config), "\n5/100000 loss", vanish, threads(2));
  require_error(o, ExitCode::io, {w.path("out"), "No such file or directory", "; "});
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
  CHECK(digest(w.path("elsewhere/checkpoint-00000004")) == good);
}

TEST_CASE("a slip in an option or a subcommand is answered with the nearest one") {
  const auto output = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), bamtrain_program());
    const Outcome o = run(arguments);
    CHECK(o.code == static_cast<int>(ExitCode::usage));
    return o.output;
  };
  const auto answered = [&](const std::vector<std::string>& arguments, const std::string& name) {
    const std::string text = output(arguments);
    INFO(text);
    CHECK(text.find("did you mean " + name + "?") != std::string::npos);
  };
  answered({"--conifg", "run.json"}, "--config");
  answered({"--dryrun"}, "--dry-run");
  answered({"--confg=run.json"}, "--config");
  answered({"evla", "--checkpoint", "x"}, "eval");
  answered({"eval", "--chekpoint", "x", "--lengths", "3"}, "--checkpoint");
  answered({"eval", "--checkpoint", "x", "--lenghts", "3"}, "--lengths");
  CHECK(output({"--something-else"}).find("did you mean") == std::string::npos);
  CHECK(output({"eval", "--lengths", "3"}).find("did you mean") == std::string::npos);
}

TEST_CASE("a folder that cannot be read, and what is no folder, is an I/O error") {
  const Workplace w;
  std::filesystem::create_symlink(w.path("loop"), w.path("loop"));
  std::filesystem::create_symlink(w.path("nowhere"), w.path("dangling"));
  std::ofstream(w.path("file")) << "no folder";
  nlohmann::json c = small_run(w);
  for (const std::string& folder : {w.path("loop"), w.path(std::string(300, 'x')), w.path("file"),
                                    w.path("dangling"), std::string("/dev/null")}) {
    c["out_dir"] = folder;
    for (const char* resume : {"never", "auto"}) {
      const Outcome o = run_config(w, c, {std::string("checkpoint.resume=") + resume});
      INFO(o.output);
      CHECK(o.output.find("; ", o.output.find("bamtrain: ")) != std::string::npos);
      CHECK((o.code == static_cast<int>(ExitCode::io) ||
             (resume == std::string("never") && o.code == static_cast<int>(ExitCode::config))));
    }
  }
}

TEST_CASE("usage errors say in their last line what is wrong, and exit with 2") {
  const Outcome o = run({bamtrain_program(), "--no-such-option"});
  CHECK(o.output ==
        "bamtrain: unknown option '--no-such-option'; bamtrain --help lists the options\n");
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  // --set takes a single value, not a list.
  require_error(run(bamtrain_command(config, {"[seed=3]"})), ExitCode::config,
                {"--set [seed=3]: unknown key"});
  CHECK(run({bamtrain_program(), "--config", config, "--dry-run", "--set",
             R"(eval.lengths=[16,32])", "--set", "data.val=" + w.path("val")},
            threads(1))
            .code == 0);
}

TEST_CASE("usage errors exit with 2") {
  CHECK(run({bamtrain_program()}).code == 2);
  CHECK(run({bamtrain_program(), "--no-such-option"}).code == 2);
  CHECK(run({bamtrain_program(), "eval", "--lengths", "0", "--checkpoint", "x"}).code == 2);
  CHECK(run({bamtrain_program(), "--config", "/nowhere/run.json"}).code ==
        static_cast<int>(ExitCode::io));
}

TEST_CASE("samples whose tokenizer nothing names are a fault of the config") {
  const Workplace w;
  require_error(run_config(w, small_run(w), {"sample.prompts=[\"x\"]"}), ExitCode::config,
                {"sample.tokenizer: missing (the tokenizer file", "give it with"});
}

TEST_CASE("auto in other letters is no folder to resume from") {
  const Workplace w;
  require_error(run_config(w, small_run(w), {"checkpoint.resume=AUTO"}), ExitCode::checkpoint,
                {"checkpoint.resume: no such folder: AUTO; did you mean auto?"});
  require_error(run_config(w, small_run(w), {"checkpoint.resume=" + w.path("gone")}),
                ExitCode::checkpoint, {w.path("gone"), "no such folder: "});
}

TEST_CASE("a lock that is no file is named with what to do about it") {
  const Workplace w;
  std::filesystem::create_directory(w.path("out"));
  REQUIRE(mkfifo(w.path("out/.lock").c_str(), 0600) == 0);
  require_error(run_config(w, small_run(w)), ExitCode::io,
                {"out/.lock: not a regular file", "; remove it"});
}

TEST_CASE("a damaged config of a checkpoint is one of the checkpoint for every command") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  REQUIRE(run_config(w, c, {"train.stop_at=1"}).code == 0);
  const std::string checkpoint = w.path("out/checkpoint-00000001");
  forge_state(checkpoint, [](nlohmann::json& state) { state["config"]["model"]["layers"] = "x"; });
  const std::vector<std::vector<std::string>> commands = {
      {"eval", "--checkpoint", checkpoint, "--lengths", "16", "--document-start", "1"},
      {"export", "--checkpoint", checkpoint, "--output", w.path("hf")},
      {"report", w.path("out"), "--output", w.path("report.html")}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> words = {bamtrain_program()};
    words.insert(words.end(), command.begin(), command.end());
    const Outcome o = run(words);
    INFO(command[0]);
    require_error(o, ExitCode::checkpoint, {"state.json", "model.layers", "; "});
    CHECK(o.output.find("write {") == std::string::npos);
  }
}

TEST_CASE("what others have named moves no terminal's cursor") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["out_dir"] = w.path("\x1b[31mred");
  c["train"]["stop_at"] = 1;
  Outcome o = run_config(w, c);
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("report ") != std::string::npos);
  CHECK(o.output.find('\x1b') == std::string::npos);
  o = run_config(w, c);
  CHECK(o.output.find("resuming from ") != std::string::npos);
  CHECK(o.output.find('\x1b') == std::string::npos);
  const std::string folder = c["out_dir"];
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"report", folder, "--output", w.path("\x1b[31mpage")},
        {"export", "--checkpoint", folder + "/checkpoint-00000001", "--no-tokenizer", "--output",
         w.path("\x1b[31mhf")}}) {
    std::vector<std::string> words = {bamtrain_program()};
    words.insert(words.end(), command.begin(), command.end());
    o = run(words);
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find('\x1b') == std::string::npos);
  }
}
