#pragma once
// The one exception type of bamtrain and the exit codes that main() turns it into.

#include <stdexcept>
#include <string>

namespace bamtrain {

/// Process exit codes. Documented for users in docs/exit-codes.md; values never change meaning.
enum class ExitCode : int {
  ok = 0,
  internal = 1,      // a broken invariant of the program itself: a bug
  usage = 2,         // the command line
  config = 3,        // a run configuration
  data = 4,          // shards, manifests, text, tokenizers
  checkpoint = 5,    // a checkpoint that cannot be read, or does not fit the run
  io = 6,            // files and folders: permissions, full disk
  nonfinite = 7,     // loss or gradient norm is NaN or infinite
  distributed = 8,   // communication between processes
  device = 9,        // the compute device: missing, too old, too little memory
  interrupted = 85,  // saved after a preemption signal: run again to resume
};

/// What was expected, what was found, where, and what the user can do about it:
/// "WHERE: expected EXPECTED, found FOUND; REMEDY". If one phrase says what was expected and found,
/// it replaces both: "run.json: no such file; check the name" (fault; core/faults.h makes the
/// frequent ones). `where` is a file, a config key or a field; each part is one phrase without a
/// trailing period. Control characters except tab and newline, and invalid UTF-8, become U+FFFD.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& where, const std::string& expected,
        const std::string& found, const std::string& remedy);
  /// "WHERE: FAULT; REMEDY"; without "WHERE: " where it is empty.
  static Error fault(ExitCode code, const std::string& where, const std::string& fault,
                     const std::string& remedy);

  ExitCode code() const { return code_; }
  const std::string& where() const { return where_; }
  /// Empty where the rest of the message says what to do.
  const std::string& remedy() const { return remedy_; }

  /// The same error with a fuller place, for a caller that knows the file.
  Error at(const std::string& where) const;
  /// The same error with an alternative added to its remedy.
  Error or_else(const std::string& remedy) const;
  /// The same error with a next step added to its remedy.
  Error and_then(const std::string& remedy) const;
  /// The same facts blamed on `where`, for a caller that knows what caused the request.
  Error as(ExitCode code, const std::string& where, const std::string& remedy) const;
  /// The same, but keeps its own remedy.
  Error as(ExitCode code, const std::string& where) const;
  /// The same error with `word` applied to each of its parts, for a caller with other names for the
  /// same things.
  template <class F>
  Error reworded(F&& word) const {
    return {code_, Parts{word(where_), word(facts_), word(remedy_)}};
  }
  /// The same error followed by another on its own line.
  Error with(const std::string& line) const;

 private:
  struct Parts {
    std::string where, facts, remedy;
    std::string text() const;
  };
  Error(ExitCode code, const Parts& parts);

  ExitCode code_;
  std::string where_;
  std::string facts_;  // "expected ..., found ...", or a fault
  std::string remedy_;
};

/// Throws the Error of require.
[[noreturn]] void broken_contract(const char* what);

/// REQUIRES: `condition`. A failure is a violated internal contract: the caller is wrong, not the
/// user. Only the test is inline. Files compiled for newer processors must not contain a copy of
/// the rest, which the linker could pick for all callers (ops/cpu/isa.h).
inline void require(bool condition, const char* what) {
  if (!condition) broken_contract(what);
}

}  // namespace bamtrain
