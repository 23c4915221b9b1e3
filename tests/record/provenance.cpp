#include "record/provenance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

ordered_json starts(const std::string& out_dir) {
  return ordered_json::parse(read_text(out_dir + "/starts.json"));
}

std::string utc(std::time_t at) {
  char text[32];
  std::tm parts = {};
  gmtime_r(&at, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

TEST_CASE("starts.json says of each start where and by what the run was computed") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string before = utc(std::time(nullptr));
  REQUIRE(run_config(w, c, {"train.stop_at=2"}).code == 0);
  const ordered_json first = starts(w.path("out"));
  REQUIRE(first.size() == 1);
  std::vector<std::string> keys;
  for (const auto& [key, value] : first[0].items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"version", "commit", "compiler", "libraries", "host",
                                         "processor", "gpu", "processes", "threads", "started",
                                         "precision", "device", "parameters"});
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  CHECK(first[0]["host"] == host);
  CHECK(read_text("/proc/cpuinfo").find(first[0]["processor"].get<std::string>() + "\n") !=
        std::string::npos);
  CHECK(first[0]["gpu"].is_null());
  CHECK(first[0]["processes"] == 1);
  CHECK(first[0]["threads"] == 2);
  CHECK(first[0]["precision"] == "fp32");
  CHECK(first[0]["device"].get<std::string>().find("cpu") == 0);
  CHECK(first[0]["libraries"].contains("MPI") == have_mpi());
  CHECK(first[0]["libraries"]["oneDNN"].get<std::string>().find('.') != std::string::npos);
  // Embedding, head, norms, bam and ssmax, and two layers of matrices.
  CHECK(first[0]["parameters"] ==
        2 * 211 * 64 + 5 * 64 + 2 * 4 * 4 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96));
  const auto started = first[0]["started"].get<std::string>();
  CHECK(before <= started);
  CHECK(started <= utc(std::time(nullptr)));

  const Outcome version = run({bamtrain_program(), "--version"});
  const auto text = [&](const char* key) { return first[0][key].get<std::string>(); };
  CHECK(version.output ==
        text("version") + " (" + text("commit") + ", " + text("compiler") + ")\n");

  REQUIRE(run_config(w, c, {"train.stop_at=3", "optimizer.lr=0.5"}).code != 0);  // refused
  CHECK(starts(w.path("out")) == first);
  REQUIRE(run_config(w, c, {"train.stop_at=3"}).code == 0);
  const ordered_json second = starts(w.path("out"));
  REQUIRE(second.size() == 2);
  CHECK(second[0] == first[0]);
  CHECK(second[1]["started"] >= first[0]["started"]);
}

TEST_CASE("state.json says which program wrote it, and equal runs have equal checkpoints") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 2;
  std::vector<std::string> states;
  for (const int processes : {1, 2}) {
    if (processes > 1 && !have_mpi()) continue;
    c["out_dir"] = w.path("out");
    const auto command = bamtrain_command(write_config(w, "config.json", c));
    REQUIRE(run(processes > 1 ? mpirun_command(processes, command) : command, threads(1)).code ==
            0);
    states.push_back(read_text(w.path("out/checkpoint-00000002/state.json")));
    const ordered_json entry = starts(w.path("out"))[0];
    CHECK(entry["processes"] == processes);
    const nlohmann::json program = nlohmann::json::parse(states.back())["program"];
    CHECK(program == nlohmann::json{{"version", entry["version"]}, {"commit", entry["commit"]}});
    std::filesystem::remove_all(w.path("out"));
  }
  CHECK((states.front() == states.back()));
}

TEST_CASE("a run goes on from a checkpoint that does not say which program wrote it") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  REQUIRE(run_config(w, c, {"train.stop_at=2"}).code == 0);
  REQUIRE(run_config(w, c, {"train.stop_at=3", "out_dir=" + w.path("whole")}).code == 0);
  // As an earlier program left it, in a folder without starts.json.
  const std::string folder = w.path("out/checkpoint-00000002/");
  std::filesystem::remove(w.path("out/starts.json"));
  auto state = nlohmann::json::parse(read_text(folder + "state.json"));
  state.erase("program");
  std::ofstream(folder + "state.json") << state.dump();
  auto manifest = nlohmann::json::parse(read_text(folder + "manifest.json"));
  for (auto& [name, file] : manifest["files"].items()) {
    if (name != "state.json") continue;
    file["bytes"] = state.dump().size();
    file["sha256"] = run({"sha256sum", folder + "state.json"}).output.substr(0, 64);
  }
  std::ofstream(folder + "manifest.json") << manifest.dump(2) << "\n";
  const Outcome o = run_config(w, c, {"train.stop_at=3"});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(digest(w.path("out/checkpoint-00000003")) == digest(w.path("whole/checkpoint-00000003")));
  CHECK(starts(w.path("out")).size() == 1);
}

TEST_CASE("a starts.json that no run wrote is left alone, and nothing is trained there") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  std::filesystem::create_directories(w.path("out"));
  for (const char* text : {"{\"name\": \"mine\"}\n", "[{\"version\": \"0.1"}) {
    std::ofstream(w.path("out/starts.json")) << text;
    const Outcome o = run_config(w, c);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::io));
    CHECK(o.output.find(w.path("out/starts.json")) != std::string::npos);
    CHECK(o.output.find("move it elsewhere") != std::string::npos);
    CHECK(read_text(w.path("out/starts.json")) == text);
    CHECK_FALSE(std::filesystem::exists(w.path("out/metrics.jsonl")));
  }
}

TEST_CASE("a starts.json that is no file, or one without an end, is refused before anything is") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  std::filesystem::create_directories(w.path("out"));
  const std::string path = w.path("out/starts.json");
  std::string found = "a folder";
  SECTION("a pipe") {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    found = "a pipe, a device or a socket";
  }
  SECTION("a folder") { std::filesystem::create_directory(path); }
  SECTION("a device") {
    std::filesystem::create_symlink("/dev/zero", path);
    found = "a pipe, a device or a socket";
  }
  SECTION("a large file") {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, (16 << 20) + 1);
    found = "16777217";
  }
  const Outcome o = run_config(w, c);
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK(o.output.find(path + ": expected ") != std::string::npos);
  CHECK(o.output.find("found " + found + "; move it elsewhere") != std::string::npos);
}

TEST_CASE("a run may have its own config in its folder, under any name that the documents use") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  std::filesystem::create_directories(w.path("out"));
  const std::string config = write_config(w, "out/run.json", c), text = read_text(config);
  const Outcome o = run(bamtrain_command(config), threads(2));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(read_text(config) == text);
  CHECK(starts(w.path("out")).size() == 1);
  CHECK(run({bamtrain_program(), "report", w.path("out"), "-o", w.path("page.html")}).code == 0);
}
