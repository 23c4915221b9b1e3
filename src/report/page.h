#pragma once
// The HTML page around charts and tables: style, and the script that shows values to pointers,
// fingers and arrow keys and saves charts as SVG and CSV.
// One file, nothing from anywhere else; light and dark, on paper, from 360 pixels up.

#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// The whole page of the command `of`, "report". `body` is HTML.
std::string html_page(const std::string& of, const std::string& title, const std::string& body);

/// Whether `text` begins as the pages of that command do.
bool is_html_page(std::string_view text, const std::string& of);

/// <figure> of an <svg>, its title above.
std::string figure(const std::string& title, const std::string& svg);

/// A table that scrolls sideways where it is too wide, and shows that it does. Cells are HTML; the
/// first column heads rows.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

}  // namespace bamtrain
