#include "core/error.h"

namespace bamtrain {

Error::Error(ExitCode code, const std::string& where, const std::string& expected,
             const std::string& found, const std::string& remedy)
    : Error(code, where,
            ": expected " + expected + ", found " + found +
                (remedy.empty() ? std::string() : "; remedy: " + remedy)) {}

Error Error::at(const std::string& where) const { return {code_, where, rest_}; }
Error Error::or_else(const std::string& remedy) const {
  return {code_, where_, rest_ + ", or " + remedy};
}
Error Error::with(const std::string& line) const { return {code_, where_, rest_ + "\n" + line}; }

Error::Error(ExitCode code, const std::string& where, const std::string& rest)
    : std::runtime_error(where + rest), code_(code), where_(where), rest_(rest) {}

void broken_contract(const char* what) {
  throw Error(ExitCode::internal, "internal contract", what, "its violation",
              "this is a bug in bamtrain, please report it");
}

}  // namespace bamtrain
