#pragma once
// Text in HTML and SVG.

#include <cmath>
#include <string>
#include <string_view>

namespace bamtrain {

/// `text` as it may stand between tags and in quoted attributes of HTML and XML: & < > " ' as
/// references; U+FFFD for what is no UTF-8 and for what replace_controls (core/utf8.h) replaces.
std::string escaped(std::string_view text);

/// A coordinate or size of SVG, rounded to hundredths.
inline double rounded(double v) { return std::round(v * 100) / 100; }

}  // namespace bamtrain
