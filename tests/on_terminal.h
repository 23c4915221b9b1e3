#pragma once
// A pseudo-terminal for tests: runs a process on it and shows what a person would see.

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"

namespace bamtrain::testing {

/// What a person types as soon as the terminal shows `marker`.
struct Typed {
  std::string marker, keys;
};

/// Everything that `child` prints, run in a process whose session has a terminal of that width.
inline std::string on_terminal(int columns, const std::function<void()>& child,
                               const Typed& typed = {}) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  std::fflush(stdout);
  const pid_t process = forkpty(&terminal, nullptr, nullptr, &size);
  REQUIRE(process >= 0);
  if (process == 0) {
    child();
    std::fflush(stdout);
    _exit(0);
  }
  std::string text, keys = typed.keys;
  char piece[4096];
  for (ssize_t n; (n = ::read(terminal, piece, sizeof piece)) > 0;) {  // ends with an error
    text.append(piece, static_cast<size_t>(n));
    if (keys.empty() || text.find(typed.marker) == std::string::npos) continue;
    CHECK(::write(terminal, keys.data(), keys.size()) == std::ssize(keys));
    keys.clear();
  }
  close(terminal);
  waitpid(process, nullptr, 0);
  return text;
}

/// The same for a program.
inline std::string on_terminal(int columns, const std::vector<std::string>& command,
                               const Typed& typed = {}) {
  const auto child = [&command] {
    std::vector<char*> argv;
    for (const std::string& s : command) argv.push_back(const_cast<char*>(s.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  };
  return on_terminal(columns, child, typed);
}

/// A terminal that re-wraps its lines when its width changes, as most do now. It knows what a live
/// line uses: CR, LF, erasing after the cursor, moving up. BEL marks the moment of the width
/// change.
class Screen {
 public:
  Screen(size_t columns, size_t later_columns) : columns_(columns), later_columns_(later_columns) {}

  void show(const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\a') {
        columns_ = later_columns_;
      } else if (c == '\r') {
        column_ = row() * columns_;
        behind_ = false;
      } else if (c == '\n') {
        if (++line_ == lines_.size()) lines_.emplace_back();
        column_ = 0;
        behind_ = false;
      } else if (c == '\033') {
        const size_t end = text.find_first_of("AJK", i);
        REQUIRE(end != std::string::npos);
        control(text[end], text.substr(i + 2, end - i - 2));
        i = end;
      } else {
        lines_[line_].resize(std::max(lines_[line_].size(), column_ + 1));
        lines_[line_][column_++] = c;
        behind_ = true;
      }
    }
  }

  /// Whole lines, however many rows each takes.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  /// The cursor's row in its line. After a character in the last column, it is still in that row.
  size_t row() const { return (column_ - (behind_ ? 1 : 0)) / columns_; }

  void control(char what, const std::string& number) {
    if (what == 'A') {
      const size_t rows = std::stoul(number);
      REQUIRE(rows <= row());
      column_ -= rows * columns_;
      return;
    }
    // K erases one row, so this line must have nothing past that row.
    const size_t row_end = (row() + 1) * columns_;
    REQUIRE((what == 'J' || lines_[line_].size() <= row_end));
    lines_[line_].resize(column_);
    if (what == 'J') lines_.resize(line_ + 1);
  }

  size_t columns_, later_columns_;
  std::vector<std::string> lines_ = {""};
  size_t line_ = 0, column_ = 0;
  bool behind_ = false;  // a character was just written before the cursor
};

}  // namespace bamtrain::testing
