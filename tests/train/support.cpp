#include "train/support.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "data/shard.h"

extern char** environ;

namespace bamtrain::testing {

Workplace::Workplace() {
  std::string pattern = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

namespace {

/// Starts the program with its output in a pipe; returns its process id and the pipe's read end.
std::pair<pid_t, int> start(const std::vector<std::string>& command,
                            const Environment& environment) {
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  std::vector<char*> argv, envp;
  for (const std::string& s : command) argv.push_back(const_cast<char*>(s.c_str()));
  argv.push_back(nullptr);
  for (char** e = environ; *e; ++e) {
    bool replaced = false;
    for (const std::string& s : environment) {
      replaced |= std::strncmp(*e, s.c_str(), s.find('=') + 1) == 0;
    }
    if (!replaced) envp.push_back(*e);
  }
  for (const std::string& s : environment) envp.push_back(const_cast<char*>(s.c_str()));
  envp.push_back(nullptr);
  // Under nohup, or in the background of a script, the tests themselves start with some signals
  // ignored.
  sigset_t obeyed;
  sigemptyset(&obeyed);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&obeyed, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &obeyed);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, command[0].c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  INFO(command[0] << ": " << std::strerror(error));
  REQUIRE(error == 0);
  return {child, pipe_ends[0]};
}

int wait_for(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Outcome run_and(const std::vector<std::string>& command, const std::vector<Reaction>& reactions,
                const Environment& environment) {
  const auto [child, output] = start(command, environment);
  Outcome outcome;
  auto next = reactions.begin();
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(output, buffer, sizeof buffer)) > 0) {
    outcome.output.append(buffer, static_cast<size_t>(n));
    for (; next != reactions.end() && outcome.output.find(next->first) != std::string::npos;
         ++next) {
      next->second(child);
    }
  }
  close(output);
  outcome.code = wait_for(child);
  return outcome;
}

Outcome run_and(const std::vector<std::string>& command, const std::string& marker,
                const std::function<void(int)>& action, const Environment& environment) {
  return run_and(command, std::vector<Reaction>{{marker, action}}, environment);
}

Outcome run(const std::vector<std::string>& command, const Environment& environment) {
  return run_and(command, std::vector<Reaction>{}, environment);
}

std::string bamtrain_program() {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  return std::string(build ? build : "build") + "/src/bamtrain";
}

std::vector<std::string> bamtrain_command(const std::string& config,
                                          const std::vector<std::string>& overrides) {
  std::vector<std::string> command = {bamtrain_program(), "--config", config};
  for (const std::string& o : overrides) {
    command.push_back("--set");
    command.push_back(o);
  }
  return command;
}

std::vector<std::string> mpirun_command(int processes, const std::vector<std::string>& command) {
  std::vector<std::string> out = {"mpirun", "-np", std::to_string(processes)};
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

Environment threads(int n) {
  return {"OMP_NUM_THREADS=" + std::to_string(n),
          // For root in containers, with more processes than cores and without a network. Open MPI
          // 4 reads the OMPI variables, Open MPI 5 those of PRTE.
          "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none",
          "OMPI_MCA_btl_vader_single_copy_mechanism=none", "PRTE_ALLOW_RUN_AS_ROOT=1",
          "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
          "PRTE_MCA_hwloc_default_binding_policy=none"};
}

bool have_mpi() {
#ifdef BAMTRAIN_TEST_MPI
  return true;
#else
  return false;
#endif
}

void write_shard(const std::string& path, int64_t tokens, int64_t vocab, uint64_t seed) {
  const Rng rng(seed, "test shard");
  std::vector<uint32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) {
    const auto n = static_cast<uint64_t>(i);
    uint32_t id = static_cast<uint32_t>(2 + rng.below(n, static_cast<uint64_t>(vocab - 2)));
    if (rng.uniform(n) < 0.02) {
      id = 1;
    } else if (i > 3 && rng.uniform(n) < 0.7) {
      id = (ids[static_cast<size_t>(i - 3)] + 1) % static_cast<uint32_t>(vocab);
    }
    ids.push_back(i == 0 ? 1 : id);
  }
  ShardWriter writer(path, 2);
  writer.append(ids);
  writer.finish();
}

Manifest write_training_manifest(const Workplace& w, char tokenizer) {
  Manifest m;
  m.tokenizer_sha256 = std::string(64, tokenizer);
  m.vocab = 211;
  m.document_start = 1;
  m.tokens = 40000;
  m.documents = 1;
  m.shards = {{"000.bin", 40000, 1, sha256_file(w.path("train/000.bin"))}};
  write_manifest(w.path("train/manifest.json"), m);
  return m;
}

nlohmann::json small_run(const Workplace& w) {
  std::filesystem::create_directories(w.path("train"));
  std::filesystem::create_directories(w.path("val"));
  write_shard(w.path("train/000.bin"), 40000, 211, 1);
  write_shard(w.path("val/000.bin"), 5000, 211, 2);
  nlohmann::json c;
  c["config_version"] = 3;
  c["name"] = "small";
  c["seed"] = 7;
  c["device"] = "cpu";
  c["out_dir"] = w.path("out");
  c["model"] = {
      {"vocab", 211},
      {"width", 64},
      {"layers", 2},
      {"heads", 4},
      {"kv_heads", 2},
      {"mlp", {{"kind", "swiglu"}, {"hidden", 96}}},
      {"attention",
       {{"prior", {{"name", "bam"}}}, {"scale", {{"name", "ssmax"}}}, {"document_mask", true}}}};
  c["data"] = {{"train", w.path("train")},
               {"val", w.path("val")},
               {"sequence_length", 64},
               {"document_start", 1}};
  c["optimizer"] = {{"name", "radam"}, {"lr", 3e-3}};
  c["schedule"] = {{"name", "cosine"}, {"min_ratio", 0.1}};
  c["train"] = {{"steps", 8}, {"tokens_per_step", 1024}, {"micro_batch", 2}, {"lanes", 4}};
  c["checkpoint"] = {{"every", 4}};
  return c;
}

std::string write_config(const Workplace& w, const std::string& name,
                         const nlohmann::json& config) {
  std::ofstream(w.path(name)) << config.dump(2);
  return w.path(name);
}

Outcome run_config(const Workplace& w, const nlohmann::json& config,
                   const std::vector<std::string>& overrides, int threads_of_each) {
  return run(bamtrain_command(write_config(w, "run.json", config), overrides),
             threads(threads_of_each));
}

Outcome run_config_into(const Workplace& w, nlohmann::json config, const std::string& out,
                        const std::vector<std::string>& overrides, int processes,
                        int threads_of_each) {
  config["out_dir"] = w.path(out);
  const auto command = bamtrain_command(write_config(w, out + ".json", config), overrides);
  return run(processes > 1 ? mpirun_command(processes, command) : command,
             threads(threads_of_each));
}

void forge_state(const std::string& checkpoint,
                 const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json state = nlohmann::json::parse(read_text(checkpoint + "/state.json"));
  nlohmann::json manifest = nlohmann::json::parse(read_text(checkpoint + "/manifest.json"));
  change(state);
  const std::string text = state.dump(2) + "\n";
  manifest["files"]["state.json"] = {{"bytes", text.size()}, {"sha256", sha256_hex(text)}};
  std::ofstream(checkpoint + "/state.json") << text;
  std::ofstream(checkpoint + "/manifest.json") << manifest.dump(2) + "\n";
}

std::string digest(const std::string& checkpoint) {
  return sha256_file(checkpoint + "/model.safetensors") + " " +
         sha256_file(checkpoint + "/optimizer.safetensors");
}

std::vector<nlohmann::json> read_metrics(const std::string& out_dir) {
  std::ifstream in(out_dir + "/metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("crc");
  }
  return lines;
}

nlohmann::json read_results(const std::string& out_dir) {
  return nlohmann::json::parse(read_text(out_dir + "/results.json"))["results"];
}

}  // namespace bamtrain::testing
