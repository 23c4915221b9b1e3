#pragma once
// Progress of a long evaluation: one line on standard error if that is a terminal.

#include <chrono>
#include <functional>
#include <string>

#include "core/terminal.h"

namespace bamtrain {

class ProgressLine {
 public:
  /// `shown`: false on all processes but the first.
  explicit ProgressLine(bool shown = true);

  /// "what: 40%, 3m20s left".
  void show(const std::string& what, double share) const;
  /// The same as a callback, for work that begins now.
  std::function<void(double share)> progress(const std::string& what) const;
  void clear() const;

 private:
  bool shown_;
  Terminal terminal_;
};

}  // namespace bamtrain
