#pragma once
// Text in Markdown.

#include <string>
#include <string_view>

namespace bamtrain {

/// `text` as it may stand in a line of Markdown, a heading or a cell of a table: printable
/// (core/utf8.h), in one line, a backslash before what would begin HTML, code, emphasis by
/// asterisks, a link or a cell.
std::string markdown_text(std::string_view text);

}  // namespace bamtrain
