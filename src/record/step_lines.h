#pragma once
// metrics.jsonl and samples.jsonl: JSON objects, one per line, each with a step.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/append_file.h"
#include "core/json_object.h"

namespace bamtrain {

/// What kind of lines a file has.
struct StepLineKind {
  bool several_of_a_step = false;  // else each line has a later step than the one before
  void (*check)(const JsonObject& line) = [](const JsonObject&) {};  // throws if it is damaged
};

/// Complete but unreadable lines at the end of a file.
struct DamagedEnd {
  int64_t lines = 0, first = 0;  // the number of lines, and the line number of the first
};

class StepLines {
 public:
  /// Opens the file for appending and cuts it back to the lines up to `step`, so that a resumed run
  /// has no step twice. A torn line at the end, from a crash or power loss, is cut off too; see
  /// damage. Throws Error (ExitCode::io) naming the line, before anything is changed, if the file
  /// cannot be read, if a damaged line is followed by lines up to `step`, or if steps do not
  /// ascend.
  StepLines(const std::string& path, int64_t step, const StepLineKind& kind = {});

  /// The last line that was kept, an object; empty if there is none.
  const nlohmann::json& last() const { return kept_.last; }
  /// Damaged lines that were cut off, except a torn line and those known to be of a later step.
  const DamagedEnd& damage() const { return kept_.damage; }

  /// Appends one line with a write to the system. REQUIRES: line has the integer "step".
  void write(const nlohmann::ordered_json& line);
  /// See AppendFile::take_lost.
  bool take_lost() { return file_.take_lost(); }
  /// Syncs the lines to disk. A checkpoint that survives a power loss needs the lines up to its
  /// step.
  void sync() { file_.sync(); }

 private:
  /// The whole lines of the file up to `step`.
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
