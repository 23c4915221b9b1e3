#pragma once
// Which program this is. The build writes version.cpp, and nothing else anew when the commit
// changes.

#include <string>

namespace bamtrain {

/// "0.1.0".
const char* version();
/// What git says of the source: a commit ("b424b93"), after a tag "v0.1.0-12-gb424b93", with
/// "-dirty" where files differ from it; "unknown" of a source without git.
const char* commit();
/// "g++ 12.2.0".
const char* compiler();

/// For --version: "0.1.0 (b424b93, g++ 12.2.0)".
std::string version_text();

}  // namespace bamtrain
