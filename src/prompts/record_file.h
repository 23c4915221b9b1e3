#pragma once
// Files with one JSON object per line, the format of published evaluation data sets.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json_object.h"

namespace bamtrain {

/// Calls take(record, line) for the first `most` records of the file at `path`; lines count from 1
/// and empty ones are skipped. The record's errors name the file and the line. Returns the SHA-256
/// of the whole file. Throws Error (ExitCode::io) if it cannot be read, and Error (ExitCode::data)
/// for a line that is not a JSON object and for a file without records. REQUIRES: most >= 1.
std::string read_records(const std::string& path, int64_t most,
                         const std::function<void(const JsonObject&, int64_t)>& take);

/// The member `key`, a list of at least one text.
std::vector<std::string> texts_of(const JsonObject& record, const char* key);

/// The member `key`, an integer in [0, count), written as a number or as text.
size_t index_of(const JsonObject& record, const char* key, size_t count);

}  // namespace bamtrain
