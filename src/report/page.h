#pragma once
// The HTML page around charts and tables: style and script. The script shows values for pointers,
// fingers and arrow keys, and saves charts as SVG and CSV. A single file without external
// resources; light and dark, printable, from 360 pixels up.

#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// The whole page of command `of`, such as "report". `body` is HTML.
std::string html_page(const std::string& of, const std::string& title, const std::string& body);

/// Whether `text` begins like a page of that command.
bool is_html_page(std::string_view text, const std::string& of);

/// <figure> of an <svg>, with its title above.
std::string figure(const std::string& title, const std::string& svg);

/// A table that scrolls sideways if it is too wide, with a visual hint. Cells are HTML; the first
/// column holds row headers. The last cell of a row spans the columns that the row lacks.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

}  // namespace bamtrain
