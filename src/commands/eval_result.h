#pragma once
// What the evaluations of a checkpoint share: the head of a result, its file and the line that
// says how far one is.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "record/progress_line.h"

namespace bamtrain {

/// {"checkpoint", "name", "step", "weights", "attention"}, with which results begin.
nlohmann::ordered_json checkpoint_facts(const Checkpoint& checkpoint, const RunConfig& config);

/// Error (ExitCode::io) for a path that cannot be written, so that it is found before the work and
/// not after it; (ExitCode::usage) at `option` for a file that is no result of bamtrain eval: a
/// slip in the name would replace a model, or what is to be measured. Empty: no file is wanted,
/// here and below.
void check_output(const std::string& path, const char* option = "--output");
/// The result with its digest (core/json_digest.h), as write_output.
void write_result(const std::string& path, const nlohmann::ordered_json& result);
/// The file appears as a whole or stays as it was.
void write_output(const std::string& path, const std::string& text);

/// "scores" of the result in the file at `path`, whatever they are, where all else there but what
/// comes of them, the keys `derived` ("scores" among them), is as in `result`: an evaluation that
/// was interrupted goes on with what it has not written yet. None of any other file: it will be
/// replaced; of a damaged one a warning on standard error says so.
std::vector<nlohmann::ordered_json> rows_before(const std::string& path,
                                                const nlohmann::ordered_json& result,
                                                const std::vector<std::string>& derived);

/// Whether "length" of such a row is one.
bool is_row_length(const nlohmann::ordered_json& value);

}  // namespace bamtrain
