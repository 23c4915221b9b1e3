#pragma once
// metrics.jsonl and samples.jsonl: JSON objects, one per line, each of a step.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/append_file.h"

namespace bamtrain {

class JsonLines {
 public:
  /// Opens the file for appending after cutting it back to the lines up to `step`, so that a
  /// resumed run shows no step twice. Error (ExitCode::io).
  JsonLines(const std::string& path, int64_t step);

  /// Appends one line and hands it to the system. REQUIRES: line has the integer "step".
  void write(const nlohmann::ordered_json& line);
  /// Puts the lines on the disk: a checkpoint that outlives a power loss must find those up to its
  /// step.
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace bamtrain
