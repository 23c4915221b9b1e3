#include "core/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace bamtrain {

namespace {

bool of_session(int descriptor) { return tcgetsid(descriptor) != -1; }

/// The parent of a process; 0 if there is none or the system does not report it.
pid_t parent_of(pid_t process) {
  std::FILE* f = std::fopen(fmt::format("/proc/{}/status", process).c_str(), "r");
  if (!f) return 0;
  char line[256];
  int parent = 0;
  while (std::fgets(line, sizeof line, f)) {
    if (std::sscanf(line, "PPid: %d", &parent) == 1) break;
  }
  std::fclose(f);
  return parent;
}

/// Finds the process that copies `descriptor`'s output: the nearest ancestor whose own descriptor
/// is another device. Opens that device if it is the session's terminal, else returns -1.
int open_behind(int descriptor) {
  struct stat made {};
  if (fstat(descriptor, &made) != 0) return -1;
  for (pid_t process = getppid(); process > 0; process = parent_of(process)) {
    const std::string place = fmt::format("/proc/{}/fd/{}", process, descriptor);
    struct stat info {};
    if (stat(place.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return -1;
    if (info.st_rdev == made.st_rdev) continue;
    const int behind = open(place.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (behind >= 0 && !of_session(behind)) {
      close(behind);
      return -1;
    }
    return behind;
  }
  return -1;
}

}  // namespace

bool environment_allows_controls() {
  const char* term = std::getenv("TERM");
  const char* plain = std::getenv("NO_COLOR");
  return term && *term && std::strcmp(term, "dumb") != 0 && !(plain && *plain);
}

Terminal::Terminal(int descriptor) : descriptor_(descriptor) {
  if (!environment_allows_controls() || !isatty(descriptor)) return;
  if (!of_session(descriptor)) {
    descriptor_ = open_behind(descriptor);
    opened_here_ = descriptor_ >= 0;
  }
  live_ = descriptor_ >= 0;
}

Terminal::~Terminal() {
  if (opened_here_) close(descriptor_);
}

size_t Terminal::columns() const {
  winsize size = {};
  const bool told = ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : 80;
}

}  // namespace bamtrain
