#include "core/faults.h"

#include <cerrno>
#include <cstring>

#include "core/abbreviate.h"
#include "core/closest_match.h"
#include "core/join.h"

namespace bamtrain {

namespace {

std::string unknown(const std::string& kind, const std::string& word) {
  return "unknown " + kind + " '" + abbreviate(word) + "'";
}

}  // namespace

Error no_such_file(ExitCode code, const std::string& path, const std::string& remedy) {
  return Error::fault(code, path, "no such file", remedy);
}

Error system_error(ExitCode code, const std::string& path, const std::string& action, int reason,
                   const std::string& remedy) {
  if (reason == ENOENT && action == "read") return no_such_file(code, path, remedy);
  return Error::fault(code, path, "cannot " + action + ": " + std::strerror(reason), remedy);
}

Error missing(ExitCode code, const std::string& where, const std::string& what,
              const std::string& remedy) {
  return Error::fault(code, where, what.empty() ? "missing" : "missing (" + what + ")", remedy);
}

Error unknown_name(ExitCode code, const std::string& where, const std::string& kind,
                   const std::string& word, const std::vector<std::string>& known) {
  const std::string near = closest_match(word, known), all = join(known);
  if (near.empty()) {
    return Error::fault(code, where, unknown(kind, word), "choose one of " + all);
  }
  const bool few = known.size() <= 8;
  return Error::fault(code, where, unknown(kind, word) + (few ? " (known: " + all + ")" : ""),
                      "did you mean " + near + "?");
}

Error unknown_name(ExitCode code, const std::string& where, const std::string& kind,
                   const std::string& word, const std::vector<std::string>& known,
                   const std::string& otherwise) {
  return Error::fault(code, where, unknown(kind, word), did_you_mean(word, known, otherwise));
}

}  // namespace bamtrain
