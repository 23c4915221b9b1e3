// Runs on several sources.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// small_run on its own shards and, a quarter as often, on others.
nlohmann::json mixed_run(const Workplace& w) {
  nlohmann::json c = small_run(w);
  std::filesystem::create_directories(w.path("more"));
  write_shard(w.path("more/000.bin"), 3000, 211, 5);
  c["data"]["train"] = {{{"path", w.path("train")}, {"weight", 4}},
                        {{"path", w.path("more")}, {"weight", 1}}};
  return c;
}

Outcome train_mixed(const Workplace& w, const nlohmann::json& c, const std::string& out,
                    const std::vector<std::string>& overrides = {}, int processes = 1) {
  return run_config_into(w, c, out, overrides, processes, 2);
}

nlohmann::json state(const Workplace& w, const std::string& checkpoint) {
  return nlohmann::json::parse(std::ifstream(w.path(checkpoint + "/state.json")));
}

}  // namespace

TEST_CASE("a run on a mixture resumes bitwise identically on any number of processes") {
  const Workplace w;
  const nlohmann::json c = mixed_run(w);
  REQUIRE(train_mixed(w, c, "whole").code == 0);
  const std::string truth = digest(w.path("whole/checkpoint-00000008"));
  REQUIRE(train_mixed(w, c, "parts", {"train.stop_at=3"}).code == 0);
  REQUIRE(train_mixed(w, c, "parts").code == 0);
  CHECK(digest(w.path("parts/checkpoint-00000008")) == truth);
  if (have_mpi()) {
    REQUIRE(train_mixed(w, c, "processes", {}, 4).code == 0);
    CHECK(digest(w.path("processes/checkpoint-00000008")) == truth);
  }
  nlohmann::json alone = c;
  alone["data"]["train"] = w.path("train");
  REQUIRE(train_mixed(w, alone, "alone").code == 0);
  CHECK(digest(w.path("alone/checkpoint-00000008")) != truth);
}

TEST_CASE("a checkpoint names the sources, and goes on with no others and no other shares") {
  const Workplace w;
  nlohmann::json c = mixed_run(w);
  REQUIRE(train_mixed(w, c, "out", {"train.stop_at=4"}).code == 0);
  const nlohmann::json data = state(w, "out/checkpoint-00000004")["data"];
  REQUIRE(data["sources"].size() == 2);
  CHECK(data["sources"][0]["path"] == w.path("train"));
  CHECK(data["sources"][0]["weight"] == 4);
  CHECK(data["sources"][0]["fingerprint"].get<std::string>().size() == 64);
  CHECK(data["sources"][1]["path"] == w.path("more"));
  CHECK(data["sources"][1]["tokenizer_sha256"].is_null());
  CHECK(data["windows"] == 64);

  const auto check_refused = [&](const nlohmann::json& changed) {
    const Outcome o = train_mixed(w, changed, "out");
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::data));
    CHECK(o.output.find("data.train: expected the shards and tasks of ") != std::string::npos);
    CHECK(train_mixed(w, changed, "out",
                      {"checkpoint.allow_change=[\"data.train\"]", "train.stop_at=4"})
              .code == 0);
  };
  SECTION("other weights") {
    c["data"]["train"][1]["weight"] = 2;
    check_refused(c);
  }
  SECTION("other shards") {
    write_shard(w.path("more/001.bin"), 100, 211, 6);
    check_refused(c);
  }
  SECTION("another order") {
    std::swap(c["data"]["train"][0], c["data"]["train"][1]);
    check_refused(c);
  }
  SECTION("moved, with weights that are the same in proportion") {
    std::filesystem::rename(w.path("more"), w.path("moved"));
    c["data"]["train"][1] = {{"path", w.path("moved")}, {"weight", 1.5}};
    c["data"]["train"][0]["weight"] = 6;
    CHECK(train_mixed(w, c, "out").code == 0);
  }
}

TEST_CASE("a dry run tells how often each source of a mixture is read") {
  const Workplace w;
  std::vector<std::string> command = bamtrain_command(write_config(w, "run.json", mixed_run(w)));
  command.push_back("--dry-run");
  const Outcome o = run(command, threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  // 8 steps of 16 windows; 46 windows of 64 + 1 tokens in 3,000.
  char text[100];
  std::snprintf(text, sizeof text, "3,000 tokens in 1 shards, 20 %% of the windows, %.3g epochs",
                8 * 16 * 0.2 / 46);
  CHECK(o.output.find(text) != std::string::npos);
}

TEST_CASE("a source without text for one window is refused before training") {
  const Workplace w;
  const nlohmann::json c = mixed_run(w);
  write_shard(w.path("more/000.bin"), 64, 211, 5);
  const Outcome o = train_mixed(w, c, "out");
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(o.output.find(w.path("more") + ": expected a shard of at least") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("the same shards under another spelling are refused, both keys named") {
  const Workplace w;
  const nlohmann::json c = mixed_run(w);
  std::filesystem::create_directory_symlink(w.path("train"), w.path("link"));
  for (const char* name : {"train/.", "train/*.bin", "link"}) {
    nlohmann::json again = c;
    again["data"]["train"].push_back({{"path", w.path(name)}, {"weight", 2}});
    const Outcome o = train_mixed(w, again, "out");
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::config));
    CHECK(o.output.find("data.train[2].path: expected shards other than those of data.train[0], "
                        "found \"" +
                        w.path(name) + "\", the files of \"" + w.path("train") + "\"") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(w.path("out")));
  }
  // Copies with the same names and sizes count as different shards.
  std::filesystem::copy(w.path("train"), w.path("copy"));
  nlohmann::json other = c;
  other["data"]["train"].push_back({{"path", w.path("copy")}, {"weight", 2}});
  CHECK(train_mixed(w, other, "out", {"train.stop_at=1"}).code == 0);
}
