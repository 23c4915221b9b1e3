#pragma once
// starts.json: where and by which program a run was computed, one entry per start. What belongs to
// the numbers themselves is in the checkpoints, whose bytes do not depend on this file.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace bamtrain {

/// Facts about a start that only the caller knows.
struct RunStart {
  std::string device;                            // Backend::name
  std::string gpu;                               // "NVIDIA H200"; empty: no GPU
  std::map<std::string, std::string> libraries;  // versions of loaded libraries by name
  int processes = 1;
  std::string precision;  // "bf16"
  int64_t parameters = 0;
};

/// Maximum size of starts.json.
inline constexpr int64_t kMostStartBytes = int64_t{16} << 20;

/// The list of entries in the file at `path`; empty if there is no file. Throws Error
/// (ExitCode::io) if it cannot be read or is not a list.
nlohmann::ordered_json read_starts(const std::string& path);

/// Appends an entry to the array in OUT/starts.json and replaces the file atomically and durably.
/// The entry also has the program, its compiler, the host, its processor, the threads of a process
/// and the time. Throws Error (ExitCode::io) if the file cannot be written, or exists and is not
/// such an array; it is then left unchanged. REQUIRES: no other process writes in `out_dir`.
void record_start(const std::string& out_dir, const RunStart& start);

/// {"version", "commit"} of this program, for state.json.
std::map<std::string, std::string> this_program();

}  // namespace bamtrain
