#pragma once
// metrics.jsonl and samples.jsonl: JSON objects, one per line, each of a step.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/append_file.h"
#include "core/json_object.h"

namespace bamtrain {

/// What the lines of a file are, beside objects with a step.
struct StepLineKind {
  bool several_of_a_step = false;  // else each line's step is a later one
  void (*check)(const JsonObject& line) = [](const JsonObject&) {};  // throws where it is damaged
};

/// Lines at a file's end that had ended and cannot be read.
struct DamagedEnd {
  int64_t lines = 0, first = 0;  // how many, and the number of the first
};

class StepLines {
 public:
  /// Opens the file for appending after cutting it back to the lines up to `step`, so that a
  /// resumed run shows no step twice. A process or a machine that died leaves a torn end, which is
  /// cut off too: see damage. Error (ExitCode::io), before anything is changed, naming the line:
  /// the file cannot be read, a damaged line has others up to `step` behind it, or steps do not
  /// ascend.
  StepLines(const std::string& path, int64_t step, const StepLineKind& kind = {});

  /// The last line that was kept, an object; empty where there is none.
  const nlohmann::json& last() const { return kept_.last; }
  /// What was cut off beside a torn line, and is not known to be of a later step.
  const DamagedEnd& damage() const { return kept_.damage; }

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
    DamagedEnd damage;
  };
  static Kept good_part(const std::string& path, int64_t step, const StepLineKind& kind);

  Kept kept_;
  AppendFile file_;
};

}  // namespace bamtrain
