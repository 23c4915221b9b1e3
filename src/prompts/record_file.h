#pragma once
// Files of JSON objects, one a line: what the data sets of evaluations are published as.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json_object.h"

namespace bamtrain {

/// Calls take(record, line) for the first `most` records of the file at `path`, from line 1 on;
/// empty lines are none. The record's errors name the file and the line. Returns the SHA-256 of the
/// whole file. Error (ExitCode::io) where it cannot be read; (ExitCode::data) for a line that is no
/// JSON object, and for a file without records. REQUIRES: most >= 1.
std::string read_records(const std::string& path, int64_t most,
                         const std::function<void(const JsonObject&, int64_t)>& take);

/// The member `key`, a list of texts, one at least.
std::vector<std::string> texts_of(const JsonObject& record, const char* key);

/// The member `key`, a number of the first `count` from 0 on, written as a number or as a text.
size_t index_of(const JsonObject& record, const char* key, size_t count);

}  // namespace bamtrain
