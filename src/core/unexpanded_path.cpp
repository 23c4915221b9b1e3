#include "core/unexpanded_path.h"

#include "core/abbreviate.h"

namespace bamtrain {

namespace {

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

/// The position where a shell variable or command begins, or npos.
size_t variable_in(const std::string& path) {
  for (size_t at = path.find('$'); at != std::string::npos; at = path.find('$', at + 1)) {
    const char next = at + 1 < path.size() ? path[at + 1] : '\0';
    if (is_ascii_letter(next) || next == '_' || next == '{' || next == '(') return at;
  }
  return std::string::npos;
}

/// "s3" for "s3://bucket"; "" if the path is not a URL.
std::string scheme_of(const std::string& path) {
  const size_t end = path.find("://");
  if (end == std::string::npos || end == 0 || !is_ascii_letter(path[0])) return "";
  for (size_t i = 0; i < end; ++i) {
    const char c = path[i];
    const bool other = c == '+' || c == '-' || c == '.';
    if (!is_ascii_letter(c) && !is_ascii_digit(c) && !other) return "";
  }
  return path.substr(0, end);
}

}  // namespace

void require_expanded_path(const std::string& path, ExitCode code, const std::string& where) {
  const auto refuse = [&](const std::string& expected, const std::string& remedy) {
    throw Error(code, where, expected, "\"" + abbreviate(path) + "\"", remedy);
  };
  if (path.starts_with("~")) {
    refuse("a path without ~, which only a shell expands",
           "write out the home folder's path; ./~ is a folder of that name");
  }
  if (variable_in(path) != std::string::npos) {
    refuse("a path without variables, which only a shell expands",
           "write the value in place of " + abbreviate(path.substr(variable_in(path))) +
               ", or let a shell expand it, in double quotes");
  }
  if (!scheme_of(path).empty()) {
    refuse("a local path, not a URL",
           "write to a local folder and copy it afterwards, or mount the store");
  }
}

}  // namespace bamtrain
