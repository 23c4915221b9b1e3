#include "core/pager.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/standard_output.h"

namespace bamtrain {

namespace {

constexpr int kNoSuchProgram = 127, kNotExecutable = 126;  // of a shell

/// The command; empty for no pager: PAGER is blank or cat, or the terminal cannot move its cursor.
std::string pager() {
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::strcmp(terminal, "dumb") == 0) return "";
  const char* const set = std::getenv("PAGER");
  const std::string chosen = set == nullptr ? "less" : set;
  const size_t begin = chosen.find_first_not_of(' ');
  return begin == std::string::npos || chosen == "cat" ? "" : chosen.substr(begin);
}

/// Makes a shell exit with kNoSuchProgram, without a message, if it does not find the program.
std::string if_there(const std::string& command) {
  const std::string program = command.substr(0, command.find(' '));
  const bool plain = std::all_of(program.begin(), program.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._+-", c) != nullptr;
  });
  return plain ? "command -v " + program + " >/dev/null 2>&1 || exit 127; " : "";
}

/// Has this process outlive its pager: one that is left early closes the pipe, and Ctrl-C is the
/// pager's. Made after the pager, which inherits what is ignored.
class OutlivesPager {
 public:
  OutlivesPager() {
    struct sigaction ignored = {};
    ignored.sa_handler = SIG_IGN;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &ignored, &before_[i]);
  }
  ~OutlivesPager() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  OutlivesPager(const OutlivesPager&) = delete;
  OutlivesPager& operator=(const OutlivesPager&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGPIPE, SIGINT, SIGQUIT};
  std::array<struct sigaction, 3> before_ = {};
};

/// False if the shell cannot run the program: then nothing was shown.
bool show(const std::string& command, const std::string& text) {
  ::setenv("LESS", "FRX", 0);  // quits where the text fits, keeps colours, leaves it on the screen
  std::fflush(stdout);
  std::FILE* const to = ::popen((if_there(command) + command).c_str(), "w");
  if (to == nullptr) return false;
  const OutlivesPager outlives;
  std::fwrite(text.data(), 1, text.size(), to);
  const int status = ::pclose(to);
  return !WIFEXITED(status) ||
         (WEXITSTATUS(status) != kNoSuchProgram && WEXITSTATUS(status) != kNotExecutable);
}

}  // namespace

void print_paged(const std::string& text) {
  const std::string command = pager();
  if (!command.empty() && ::isatty(STDOUT_FILENO) != 0 && show(command, text)) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw standard_output_error(errno);
  }
  flush_standard_output();
}

}  // namespace bamtrain
