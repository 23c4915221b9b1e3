#pragma once
// Errors of the frequent kinds. One phrase says what was expected and what was found.

#include <string>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// "PATH: no such file; REMEDY".
Error no_such_file(ExitCode code, const std::string& path,
                   const std::string& remedy = "check the name");

/// "PATH: cannot ACTION: Permission denied; REMEDY", by the system's reason, an errno value. A file
/// to read that is absent is "no such file".
Error system_error(ExitCode code, const std::string& path, const std::string& action, int reason,
                   const std::string& remedy);

/// "WHERE: missing (WHAT); REMEDY". WHAT may be empty.
Error missing(ExitCode code, const std::string& where, const std::string& what,
              const std::string& remedy);

/// "WHERE: unknown KIND 'WORD'; choose one of A, B", or "WHERE: unknown KIND 'WORD' (known: A, B);
/// did you mean A?" where one is near; of more than a few names without "(known: ...)".
Error unknown_name(ExitCode code, const std::string& where, const std::string& kind,
                   const std::string& word, const std::vector<std::string>& known);
/// Of names that are too many to list: "WHERE: unknown KIND 'WORD'; did you mean A?", or OTHERWISE
/// in its place.
Error unknown_name(ExitCode code, const std::string& where, const std::string& kind,
                   const std::string& word, const std::vector<std::string>& known,
                   const std::string& otherwise);

}  // namespace bamtrain
