#include "checkpoint/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "catch.h"
#include "scenario.h"

namespace bamtrain {
namespace {

TEST_CASE("a checkpoint comes back as it was saved") {
  const TemporaryFolder out;
  Sample sample(10);
  CheckpointContents contents = sample.contents();
  contents.state["numbers"] = {0.1, -0.0, 1e-310, 1.7976931348623157e308, 9007199254740993};
  const nlohmann::json given = contents.state;
  save_checkpoint(out.path(), 1234, contents, no_warning);
  CHECK(names_in(out.path()) == std::vector<std::string>{"checkpoint-00001234"});
  const Checkpoint found = open_checkpoint(out / "checkpoint-00001234");
  CHECK(found.folder == out / "checkpoint-00001234");
  CHECK(found.step == 1234);
  CHECK(found.state.at("format") == 1);
  CHECK(found.state.at("step") == 1234);
  CHECK(found.state.at("nested").at("large") == 18446744073709551615u);
  CHECK(found.state.at("numbers") == given.at("numbers"));
  CHECK(std::signbit(found.state.at("numbers")[1].get<double>()));
  CHECK(found.state.size() == given.size() + 2);
  CHECK(holds(found, 10));
  CHECK(SafetensorsFile::open(found.model_file()).metadata().at("format") == "pt");
}

TEST_CASE("a run's folder is refused with the name of its newest checkpoint") {
  const TemporaryFolder out;
  save(out.path(), 5, 10);
  save(out.path(), 12, 10);
  const std::string message =
      error_of(ExitCode::checkpoint, [&] { open_checkpoint(out.path() + "/"); });
  INFO(message);
  CHECK(message.find("expected a checkpoint folder, found a run's folder") != std::string::npos);
  CHECK(message.ends_with("name one of its checkpoints: " + (out / "checkpoint-00000012")));
  CHECK(newest_step(out.path()) == 12);
  const TemporaryFolder none;
  CHECK_FALSE(newest_step(none.path()));
  CHECK(error_of(ExitCode::checkpoint, [&] {
          open_checkpoint(none.path());
        }).find("expected a checkpoint, or the folder of a run") != std::string::npos);
}

TEST_CASE("the same contents give the same bytes in every file") {
  const TemporaryFolder one, two, three;
  save(one.path(), 5, 10);
  save(two.path(), 5, 10);
  CHECK(save_together(three.path(), 5, 10));
  const std::vector<std::string> names = names_in(one / "checkpoint-00000005");
  CHECK(names == names_in(three / "checkpoint-00000005"));
  for (const std::string& name : names) {
    const std::string bytes = read_bytes(one / "checkpoint-00000005/" + name);
    CHECK(bytes == read_bytes(two / "checkpoint-00000005/" + name));
    CHECK(bytes == read_bytes(three / "checkpoint-00000005/" + name));
  }
}

/// What a file system may do to a file that several nodes write.
TEST_CASE("a checkpoint without the bytes that were written is not published") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const auto overwrite = [&](const char* file, int64_t from, int64_t bytes) {
    std::fstream f(out / (".tmp-checkpoint-00000002/" + std::string(file)),
                   std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(from);
    f << std::string(static_cast<size_t>(bytes), '\0');
  };
  const auto shorten = [&](int64_t by) {
    const std::string path = out / ".tmp-checkpoint-00000002/optimizer.safetensors";
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - by);
  };
  const std::vector<std::function<void()>> losses = {
      [&] { overwrite("model.safetensors", 0, 8); },
      [&] { overwrite("model.safetensors", 400, 8); },
      [&] { overwrite("optimizer.safetensors", 400, 4); },
      [&] { shorten(1); },
      [&] { shorten(4); },
      [&] { shorten(16); },
  };
  for (size_t n = 0; n < losses.size(); ++n) {
    INFO("loss " << n);
    CHECK_FALSE(save_together(out.path(), 2, 20, losses[n]));
    CHECK(names_in(out.path()) == std::vector<std::string>{"checkpoint-00000001"});
  }
  CHECK(save_together(out.path(), 2, 20));
}

TEST_CASE("names of checkpoints and steps belong together, and nothing else is such a name") {
  for (int64_t step : {int64_t{0}, int64_t{7}, int64_t{99999999}, int64_t{100000000},
                       std::numeric_limits<int64_t>::max()}) {
    CHECK(checkpoint_step(checkpoint_name(step)) == step);
  }
  CHECK(checkpoint_name(1234) == "checkpoint-00001234");
  for (const char* name :
       {"", "checkpoint-", "checkpoint-1", "checkpoint-000000001", "checkpoint-00000001x",
        "checkpoint--0000001", "checkpoint-99999999999999999999", "Checkpoint-00000001",
        "checkpoint-0000 001", ".tmp-checkpoint-00000001", "checkpoint-0000000"}) {
    INFO(name);
    CHECK(!checkpoint_step(name).has_value());
  }
}

TEST_CASE("the newest checkpoint is that of the highest step, whatever the order of names") {
  const TemporaryFolder out;
  CHECK(!newest_checkpoint(out.path(), no_warning).has_value());
  CHECK(!newest_checkpoint(out / "none", no_warning).has_value());
  write_bytes(out / "metrics.jsonl", "");
  std::filesystem::create_directory(out / "checkpoint-best");
  CHECK(!newest_checkpoint(out.path(), no_warning).has_value());
  save(out.path(), 100000000, 30);
  save(out.path(), 99999999, 20);
  save(out.path(), 0, 10);
  CHECK(newest_tag(out.path()) == 30);
}

TEST_CASE("a folder that cannot be listed is an error, not an empty one") {
  const TemporaryFolder out;
  write_bytes(out / "file", "");
  CHECK(contains(error_of(ExitCode::io, [&] { newest_checkpoint(out / "file", no_warning); }),
                 "file: cannot list the folder: Not a directory"));
}

TEST_CASE("looking for the newest checkpoint changes nothing, not even a save in progress") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  std::filesystem::create_directory(out / ".tmp-checkpoint-00000002");
  std::filesystem::rename(out / "checkpoint-00000001", out / ".replaced-checkpoint-00000001");
  const auto before = names_in(out.path());
  const auto found = newest_checkpoint(out.path(), no_warning);
  REQUIRE(found.has_value());
  CHECK(holds(*found, 10));
  CHECK(names_in(out.path()) == before);
  remove_leftovers(out.path(), no_warning);
  CHECK(names_in(out.path()) == std::vector<std::string>{"checkpoint-00000001"});
  CHECK(newest_tag(out.path()) == 10);
}

TEST_CASE("leftovers are removed and nothing that only looks like one") {
  const TemporaryFolder out;
  const std::vector<std::string> kept = {".replaced-checkpoint-best", ".tmp", ".tmp-other", "a"};
  for (const std::string& name : kept) write_bytes(out / name, "");
  std::filesystem::create_directories(out / ".tmp-checkpoint-00000001/deep/deeper");
  std::filesystem::create_symlink(out / "a", out / ".tmp-checkpoint-00000001/deep/link");
  write_bytes(out / ".tmp-checkpoint-00000002", "a file");
  write_bytes(out / ".tmp-trial", "");
  remove_leftovers(out.path(), no_warning);
  CHECK(names_in(out.path()) == kept);
}

TEST_CASE("pruning keeps the newest ones and every step that divides") {
  const TemporaryFolder out;
  const auto steps = [&] {
    std::vector<int64_t> found;
    for (const std::string& name : names_in(out.path())) {
      found.push_back(checkpoint_step(name).value_or(-1));
    }
    return found;
  };
  for (int step = 0; step <= 100; step += 10) save(out.path(), step, step);
  prune_checkpoints(out.path(), 11, 0, std::nullopt, no_warning);
  CHECK(steps().size() == 11);
  prune_checkpoints(out.path(), 3, 40, std::nullopt, no_warning);
  CHECK(steps() == std::vector<int64_t>{0, 40, 80, 90, 100});
  prune_checkpoints(out.path(), 3, 40, std::nullopt, no_warning);
  CHECK(steps() == std::vector<int64_t>{0, 40, 80, 90, 100});
  prune_checkpoints(out.path(), 1, 0, std::nullopt, no_warning);
  CHECK(steps() == std::vector<int64_t>{100});
  CHECK(newest_tag(out.path()) == 100);
}

TEST_CASE("pruning keeps the best one beside the newest and those whose step divides") {
  const TemporaryFolder out;
  const auto steps_after = [&](int64_t keep, int64_t keep_every, std::optional<int64_t> best) {
    prune_checkpoints(out.path(), keep, keep_every, best, no_warning);
    std::vector<int64_t> found;
    for (const std::string& name : names_in(out.path())) {
      found.push_back(checkpoint_step(name).value_or(-1));
    }
    return found;
  };
  using Steps = std::vector<int64_t>;
  for (int step = 0; step <= 100; step += 10) save(out.path(), step, step);
  CHECK(steps_after(2, 40, 50) == Steps{0, 40, 50, 80, 90, 100});
  CHECK(steps_after(2, 40, 40) == Steps{0, 40, 80, 90, 100});  // kept by both rules
  CHECK(steps_after(1, 0, 40) == Steps{40, 100});
  CHECK(steps_after(1, 0, 30) == Steps{100});  // step 30 does not exist
  CHECK(steps_after(1, 0, 100) == Steps{100});
  save(out.path(), 0, 0);
  CHECK(steps_after(1, 0, 0) == Steps{0, 100});
}

TEST_CASE("whether a checkpoint of a step is there is a matter of its folder's name") {
  const TemporaryFolder out;
  save(out.path(), 7, 70);
  CHECK(has_checkpoint(out.path(), 7));
  CHECK_FALSE(has_checkpoint(out.path(), 8));
  std::filesystem::create_directory(out / ".tmp-checkpoint-00000008");
  CHECK_FALSE(has_checkpoint(out.path(), 8));
  std::filesystem::remove(out / "checkpoint-00000007/state.json");
  CHECK(has_checkpoint(out.path(), 7));
  write_bytes(out / "file", "");
  CHECK(contains(error_of(ExitCode::io, [&] { has_checkpoint(out / "file", 7); }),
                 "file: cannot list the folder"));
}

TEST_CASE("a state that JSON would change on the way is refused before the disk is touched") {
  const TemporaryFolder out;
  for (double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Sample sample(10);
    CheckpointContents contents = sample.contents();
    contents.state["loss"] = number;
    CHECK_THROWS_AS(save_checkpoint(out.path(), 1, contents, no_warning), Error);
  }
  Sample sample(10);
  CheckpointContents contents = sample.contents();
  contents.state["path"] = "\xff";
  CHECK(contains(
      error_of(ExitCode::checkpoint, [&] { save_checkpoint(out.path(), 1, contents, no_warning); }),
      "state.json: text that is not valid UTF-8"));
  CHECK(names_in(out.path()).empty());
}

TEST_CASE("a checkpoint of a model of other shapes names tensor and both shapes") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  Sample sample(10);
  std::vector<NamedTensor> model = sample.model();
  model[0].shape = {3, 5};
  const Checkpoint checkpoint = open_checkpoint(out / "checkpoint-00000001");
  const std::string message = error_of(ExitCode::checkpoint, [&] {
    read_tensors(SafetensorsFile::open(checkpoint.model_file()), model);
  });
  CHECK(contains(message, "model.safetensors: tensor \"model.embed_tokens.weight\""));
  CHECK(contains(message, "expected (3, 5) F32, found (3, 4) F32"));
}

}  // namespace
}  // namespace bamtrain
