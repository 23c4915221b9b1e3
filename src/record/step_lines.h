#pragma once
// metrics.jsonl and samples.jsonl: JSON objects, one per line, each of a step.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/append_file.h"

namespace bamtrain {

class StepLines {
 public:
  /// Opens the file for appending after cutting it back to the lines up to `step`, so that a
  /// resumed run shows no step twice. A process or a machine that died leaves a torn end, which is
  /// cut off too. Error (ExitCode::io), before anything is changed: the file cannot be read, or a
  /// damaged line has others up to `step` behind it.
  StepLines(const std::string& path, int64_t step);

  /// The last line that was kept, an object; empty where there is none.
  const nlohmann::json& last() const { return kept_.last; }

  /// Appends one line and hands it to the system. REQUIRES: line has the integer "step".
  void write(const nlohmann::ordered_json& line);
  /// As AppendFile::take_lost.
  bool take_lost() { return file_.take_lost(); }
  /// Puts the lines on the disk: a checkpoint that outlives a power loss must find those up to its
  /// step.
  void sync() { file_.sync(); }

 private:
  /// What of the file is whole lines of steps up to `step`.
  struct Kept {
    int64_t bytes = 0;
    nlohmann::json last = nlohmann::json::object();
  };
  static Kept good_part(const std::string& path, int64_t step);

  Kept kept_;
  AppendFile file_;
};

}  // namespace bamtrain
