#pragma once
// starts.json: where and by what a run was computed, an entry for every start. What belongs to the
// numbers themselves is in the checkpoints, whose bytes do not depend on this.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace bamtrain {

/// What a process knows of its start beside what every program can ask.
struct RunStart {
  std::string device;                            // Backend::name
  std::string gpu;                               // "NVIDIA H200"; empty: none
  std::map<std::string, std::string> libraries;  // versions as they were loaded, by name
  int processes = 1;
  std::string precision;  // "bf16"
  int64_t parameters = 0;
};

/// starts.json is no larger.
inline constexpr int64_t kMostStartBytes = int64_t{16} << 20;

/// The entries in the file at `path`, a list; none where there is no file. Error (ExitCode::io):
/// it cannot be read, or is no list.
nlohmann::ordered_json read_starts(const std::string& path);

/// Appends an entry to the array in OUT/starts.json, which appears anew as a whole and on the disk;
/// with the program, its compiler, the host, its processor, the threads of a process and the time.
/// Error (ExitCode::io) where the file cannot be written, or is there and is no such array: it
/// stays as it is. REQUIRES: no other process writes in `out_dir`.
void record_start(const std::string& out_dir, const RunStart& start);

/// {"version", "commit"} of this program, for state.json.
std::map<std::string, std::string> this_program();

}  // namespace bamtrain
