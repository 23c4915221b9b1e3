#include "core/error.h"

#include "core/utf8.h"

namespace bamtrain {

namespace {

/// The found value may be anything: it must not move a terminal's cursor or cut the message short.
std::string shown(const std::string& part) { return printable(part); }

/// A remedy and one more.
std::string joined(const std::string& remedy, const char* by, const std::string& more) {
  return remedy.empty() ? more : remedy + by + more;
}

}  // namespace

std::string Error::Parts::text() const {
  return (where.empty() ? "" : where + ": ") + facts + (remedy.empty() ? "" : "; " + remedy);
}

Error::Error(ExitCode code, const std::string& where, const std::string& expected,
             const std::string& found, const std::string& remedy)
    : Error(code, Parts{shown(where), shown("expected " + expected + ", found " + found),
                        shown(remedy)}) {}

Error::Error(ExitCode code, const Parts& parts)
    : std::runtime_error(parts.text()),
      code_(code),
      where_(parts.where),
      facts_(parts.facts),
      remedy_(parts.remedy) {}

Error Error::fault(ExitCode code, const std::string& where, const std::string& fault,
                   const std::string& remedy) {
  return {code, Parts{shown(where), shown(fault), shown(remedy)}};
}

Error Error::at(const std::string& where) const {
  return {code_, Parts{shown(where), facts_, remedy_}};
}
Error Error::or_else(const std::string& remedy) const {
  return {code_, Parts{where_, facts_, joined(remedy_, ", or ", shown(remedy))}};
}
Error Error::and_then(const std::string& remedy) const {
  return {code_, Parts{where_, facts_, joined(remedy_, ", and ", shown(remedy))}};
}
Error Error::as(ExitCode code, const std::string& where, const std::string& remedy) const {
  return {code, Parts{where, facts_, shown(remedy)}};
}
Error Error::as(ExitCode code, const std::string& where) const {
  return {code, Parts{where, facts_, remedy_}};
}
Error Error::with(const std::string& line) const {
  return {code_, Parts{where_, remedy_.empty() ? facts_ + "\n" + line : facts_,
                       remedy_.empty() ? "" : remedy_ + "\n" + line}};
}

void broken_contract(const char* what) {
  throw Error::fault(ExitCode::internal, "internal error",
                     std::string("violated contract: ") + what,
                     "this is a bug in bamtrain, please report it");
}

}  // namespace bamtrain
