#pragma once
// When progress prints its next line: every 0.2 s on a terminal, where it rewrites one line, and
// every ten seconds in a log.

#include <chrono>
#include <functional>
#include <utility>

namespace bamtrain {

class LinePace {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;  // tests give a clock of their own

  /// The first line is due at once.
  LinePace(bool live, Now now)
      : now_(std::move(now)),
        interval_(live ? std::chrono::milliseconds(200) : std::chrono::seconds(10)),
        next_(now_()) {}

  Clock::time_point now() const { return now_(); }
  /// Whether the next line is due. If so, it counts as printed.
  bool take() {
    const Clock::time_point at = now_();
    if (at < next_) return false;
    next_ = at + interval_;
    return true;
  }
  /// Counts a line as printed now.
  void printed() { next_ = now_() + interval_; }

 private:
  Now now_;
  Clock::duration interval_;
  Clock::time_point next_;
};

inline double in_seconds(LinePace::Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace bamtrain
