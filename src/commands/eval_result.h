#pragma once
// Shared by the evaluations of a checkpoint: the head of a result and its file.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "record/progress_line.h"

namespace bamtrain {

/// {"checkpoint", "name", "step", "weights", "attention"}, the first members of results.
nlohmann::ordered_json checkpoint_facts(const Checkpoint& checkpoint, const RunConfig& config);

/// Throws Error (ExitCode::io) if the path is not writable, so that it fails before the work and
/// not after it. Throws Error (ExitCode::usage) at `option` for a file that is not a result of
/// bamtrain eval: a typo could replace a model, or the data to be measured. Empty: no output file,
/// here and below.
void check_output(const std::string& path, const char* option = "--output");
/// Writes the result with its digest (core/json_digest.h), as write_output.
void write_result(const std::string& path, const nlohmann::ordered_json& result);
/// Replaces the file atomically.
void write_output(const std::string& path, const std::string& text);

/// The "scores" of the result in the file at `path`, if everything else there, except the keys
/// `derived` ("scores" among them), matches `result`. So an interrupted evaluation resumes with the
/// scores it has not written yet. Empty for any other file, which will be replaced; for a damaged
/// one also prints a warning to standard error.
std::vector<nlohmann::ordered_json> rows_before(const std::string& path,
                                                const nlohmann::ordered_json& result,
                                                const std::vector<std::string>& derived);

/// Whether the "length" of such a row is valid.
bool is_row_length(const nlohmann::ordered_json& value);

}  // namespace bamtrain
