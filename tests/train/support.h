#pragma once
// Shared code of the tests of whole runs: synthetic shards, configs, child processes.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bamtrain {
struct Manifest;
}

namespace bamtrain::testing {

/// A temporary folder, removed at the end of the test.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

/// The content of a file, which must exist.
std::string read_text(const std::string& path);

struct Outcome {
  int code = 0;        // exit code; 128 + n for signal n
  std::string output;  // standard output and standard error
};

/// Environment variables for a child, "NAME=value".
using Environment = std::vector<std::string>;

/// Runs a program to its end.
Outcome run(const std::vector<std::string>& command, const Environment& environment = {});

/// Runs a program. Calls `action` with its process id as soon as its output contains `marker`, then
/// waits for its end.
Outcome run_and(const std::vector<std::string>& command, const std::string& marker,
                const std::function<void(int)>& action, const Environment& environment = {});
/// The same with several markers and actions, one after the other.
using Reaction = std::pair<std::string, std::function<void(int)>>;
Outcome run_and(const std::vector<std::string>& command, const std::vector<Reaction>& reactions,
                const Environment& environment = {});

/// The program under test; and mpirun in front of it, with one thread per process.
std::string bamtrain_program();
std::vector<std::string> bamtrain_command(const std::string& config,
                                          const std::vector<std::string>& overrides = {});
std::vector<std::string> mpirun_command(int processes, const std::vector<std::string>& command);
Environment threads(int n);
bool have_mpi();

/// Writes a shard of `tokens` ids below `vocab`: noisy repetitions, so that a small model learns.
/// About every 50th token is document_start = 1.
void write_shard(const std::string& path, int64_t tokens, int64_t vocab, uint64_t seed);

/// Writes and returns a manifest of the workplace's single training shard, for the tokenizer
/// `tokenizer`.
Manifest write_training_manifest(const Workplace& w, char tokenizer);

/// A run that trains in a second or two: shards in the workplace, a bam + ssmax model, 8 steps of 4
/// lanes. Tests change keys of the returned object.
nlohmann::json small_run(const Workplace& w);
/// Writes the config to the workplace and returns its path.
std::string write_config(const Workplace& w, const std::string& name, const nlohmann::json& config);

/// Trains this config, as run.json, to the end of the run.
Outcome run_config(const Workplace& w, const nlohmann::json& config,
                   const std::vector<std::string>& overrides = {}, int threads_of_each = 2);
/// The same, as OUT.json, into w.path(out).
Outcome run_config_into(const Workplace& w, nlohmann::json config, const std::string& out,
                        const std::vector<std::string>& overrides = {}, int processes = 1,
                        int threads_of_each = 1);

/// SHA-256 of a checkpoint's model.safetensors and of its optimizer.safetensors, joined.
std::string digest(const std::string& checkpoint);
/// Replaces a checkpoint's state.json by its content after `change`, and updates the manifest.
void forge_state(const std::string& checkpoint, const std::function<void(nlohmann::json&)>& change);
/// The lines of OUT/metrics.jsonl, without their crc.
std::vector<nlohmann::json> read_metrics(const std::string& out_dir);
/// "results" of OUT/results.json.
nlohmann::json read_results(const std::string& out_dir);

}  // namespace bamtrain::testing
