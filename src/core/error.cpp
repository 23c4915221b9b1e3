#include "core/error.h"

#include "core/utf8.h"

namespace bamtrain {

namespace {

/// The found value may be anything: it must not move a terminal's cursor or cut the message short.
std::string shown(const std::string& part) { return printable(part); }

}  // namespace

Error::Error(ExitCode code, const std::string& where, const std::string& expected,
             const std::string& found, const std::string& remedy)
    : Error(code, shown(where), shown(": expected " + expected + ", found " + found),
            remedy.empty() ? std::string() : shown("; remedy: " + remedy)) {}

Error Error::at(const std::string& where) const { return {code_, shown(where), facts_, remedy_}; }
Error Error::or_else(const std::string& remedy) const {
  return {code_, where_, facts_, remedy_ + ", or " + remedy};
}
Error Error::and_then(const std::string& remedy) const {
  return {code_, where_, facts_, remedy_ + ", and " + shown(remedy)};
}
Error Error::as(ExitCode code, const std::string& where, const std::string& remedy) const {
  return {code, where, facts_, "; remedy: " + remedy};
}
Error Error::as(ExitCode code, const std::string& where) const {
  return {code, where, facts_, remedy_};
}
Error Error::with(const std::string& line) const {
  return {code_, where_, facts_, remedy_ + "\n" + line};
}

Error::Error(ExitCode code, const std::string& where, const std::string& facts,
             const std::string& remedy)
    : std::runtime_error(where + facts + remedy),
      code_(code),
      where_(where),
      facts_(facts),
      remedy_(remedy) {}

void broken_contract(const char* what) {
  throw Error(ExitCode::internal, "internal contract", what, "its violation",
              "this is a bug in bamtrain, please report it");
}

}  // namespace bamtrain
