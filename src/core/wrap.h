#pragma once
// Text in lines of a limited width.

#include <cstddef>
#include <string>

namespace bamtrain {

/// Columns of what is printed for a terminal.
inline constexpr size_t kTerminalColumns = 80;

/// `lead` and then the words of `text`, in lines of at most `columns` bytes; the lines after the
/// first begin with `indent` spaces. The first word stays on the line of `lead`. A longer word has
/// a line of its own.
std::string wrapped(const std::string& lead, const std::string& text, size_t indent,
                    size_t columns = kTerminalColumns);

}  // namespace bamtrain
