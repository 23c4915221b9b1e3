#pragma once
// Escapes text for Markdown.

#include <string>
#include <string_view>

namespace bamtrain {

/// `text` for one line of Markdown, a heading or a table cell: printable (core/utf8.h), on one
/// line, with a backslash before anything that would start HTML, code, emphasis by asterisks, a
/// link or a cell.
std::string markdown_text(std::string_view text);

}  // namespace bamtrain
