#pragma once
// Text and Markdown as troff with the macros of manual pages (man 7).

#include <string>
#include <string_view>

namespace bamtrain {

/// The text, for a line or a macro's argument: it prints as it is, from any character set.
std::string roff_text(std::string_view text);

/// "\fBtext\fR": in bold, in italics.
std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

/// Left-aligned, without hyphens at the ends of lines: for text with names of options and files.
inline constexpr const char* kRoffLeft = ".nh\n.ad l\n";

/// Lines as they are, in a paragraph of their own.
std::string roff_verbatim(std::string_view lines);

/// A page of Markdown as sections of a manual page. It may have what docs/exit-codes.md has:
/// headings, paragraphs, lists, indented code and tables; code and links in their text. A table
/// becomes a list: its first column are the labels.
std::string roff_page(std::string_view markdown);

}  // namespace bamtrain
