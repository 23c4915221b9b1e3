#pragma once
// Progress of a long evaluation on standard error: one line that is rewritten on a terminal, a
// plain line every ten seconds elsewhere.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/terminal.h"
#include "record/line_pace.h"

namespace bamtrain {

class ProgressLine {
 public:
  /// `shown`: false on all processes but the first.
  explicit ProgressLine(bool shown = true, LinePace::Now now = std::chrono::steady_clock::now);

  /// "what: 40%".
  void show(const std::string& what, double share) const;
  /// "what: 40%, 3m20s left" as a callback, for work that begins now. Must not outlive this object.
  std::function<void(double share)> progress(const std::string& what) const;
  void clear() const;

 private:
  void print(const std::string& line) const;

  bool shown_;
  Terminal terminal_;
  mutable LinePace pace_;
};

/// "what: 40%, 3m20s left" after `seconds` of work; the time is left out if they are unknown.
std::string share_line(const std::string& what, double share, std::optional<double> seconds);

}  // namespace bamtrain
