#pragma once
// The identity of this program. The build writes version.cpp, so that a new commit rebuilds nothing
// else.

#include <string>

namespace bamtrain {

/// "0.1.0".
const char* version();
/// What git says about the source: a commit ("b424b93"), or "v0.1.0-12-gb424b93" after a tag, with
/// "-dirty" if files differ from it; "unknown" for a source tree without git.
const char* commit();
/// "g++ 12.2.0".
const char* compiler();

/// For --version: "0.1.0 (b424b93, g++ 12.2.0)".
std::string version_text();

}  // namespace bamtrain
