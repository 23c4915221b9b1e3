#pragma once
// Text for HTML and SVG.

#include <cmath>
#include <string>
#include <string_view>

namespace bamtrain {

/// Escapes `text` for use between tags and in quoted attributes of HTML and XML: & < > " ' become
/// references; invalid UTF-8 and what replace_controls (core/utf8.h) replaces become U+FFFD.
std::string escaped(std::string_view text);

/// A path as an address between quotes: bytes other than ASCII letters, digits, '-', '.', '_', '~'
/// and '/' become %XX (RFC 3986).
std::string url_path(std::string_view path);

/// A coordinate or size of SVG, rounded to hundredths.
inline double rounded(double v) { return std::round(v * 100) / 100; }

}  // namespace bamtrain
