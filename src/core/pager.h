#pragma once
// Long text for people.

#include <string>

namespace bamtrain {

/// Prints the text: on a terminal through $PAGER, or else less -FRX, as git does; anywhere else, or
/// where there is no such program, as it is. An empty PAGER, or "cat", asks for no pager.
/// Error (ExitCode::io) where standard output takes no more.
void print_paged(const std::string& text);

}  // namespace bamtrain
