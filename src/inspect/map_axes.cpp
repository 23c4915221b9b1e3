#include "inspect/map_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"
#include "report/markup.h"

namespace bamtrain {

namespace {

constexpr int kMostColumns = 8;

/// Lengths in units of a tenth of a field. Names are at most 9 units high; fewer on a map of few
/// fields, where a unit is large.
struct Geometry {
  double map, font, strip;  // strip: room of the names

  explicit Geometry(int64_t fields)
      : map(10.0 * static_cast<double>(fields)), font(std::min(9.0, map / 25)), strip(5.6 * font) {}
  double total() const { return map + strip; }
  /// Pixels of the map and its names where the font has `pixels`.
  double width(double pixels) const { return std::ceil(pixels * total() / font); }
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// One name at each field, to the left of the fields or above them.
std::string names_of(const std::vector<std::string>& names, const Geometry& g, bool left) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    const double middle = rounded(10.0 * static_cast<double>(i) + 5 + 0.35 * g.font),
                 end = rounded(g.strip - 0.4 * g.font);
    out += left ? fmt::format("<text class=\"name end\" x=\"{}\" y=\"{}\">", end, middle)
                : fmt::format("<text class=\"name\" transform=\"translate({} {}) rotate(-90)\">",
                              middle, end);
    out += escaped(axis_name(names[i])) + "</text>";
  }
  return out;
}

/// `picture` with elements of SVG on its left and at its top.
std::string framed(const std::string& picture, const Geometry& g, double rows,
                   const std::string& left, const std::string& top) {
  const double strip = rounded(g.strip);
  return fmt::format(
      "<div class=\"field\"><div class=\"axes\" style=\"--font: {0}px; grid-template-columns: "
      "minmax(0, {1}fr) minmax(0, {2}fr)\"><svg class=\"top\" viewBox=\"0 0 {2} {1}\" "
      "aria-hidden=\"true\">{3}</svg><svg viewBox=\"0 0 {1} {4}\" "
      "aria-hidden=\"true\">{5}</svg>{6}</div></div>",
      rounded(g.font), strip, g.map, top, 10 * rows, left, picture);
}

}  // namespace

std::string axis_name(const std::string& token) {
  size_t begin = 0, end = token.size();
  while (begin < end && is_space(token[begin])) ++begin;
  while (end > begin && is_space(token[end - 1])) --end;
  if (begin == end) return token.find('\n') == std::string::npos ? "\u00B7" : "\u21B5";
  std::string out;
  int columns = 0;
  for (size_t at = begin; at < end;) {
    const Utf8Character c = utf8_character_at(token, at);
    columns += c.code >= 0x1100 ? 2 : 1;  // wide scripts begin there
    if (columns > kMostColumns) return out + "\u2026";
    out += token.substr(at, c.bytes);
    at += c.bytes;
  }
  return out;
}

std::string token_axes(const std::vector<std::string>& tokens) {
  if (std::ssize(tokens) > kMostAxisNames) return "";
  const Geometry g(std::ssize(tokens));
  return "<svg class=\"tokens\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><g "
         "id=\"token-rows\">" +
         names_of(tokens, g, true) + "</g><g id=\"token-columns\">" + names_of(tokens, g, false) +
         "</g></defs></svg>\n";
}

std::string with_token_axes(const std::string& picture, int64_t side) {
  return framed(picture, Geometry(side), static_cast<double>(side), "<use href=\"#token-rows\"/>",
                "<use href=\"#token-columns\"/>");
}

std::string with_axes(const std::string& picture, const std::vector<std::string>& rows,
                      const std::vector<std::string>& columns) {
  const Geometry g(std::ssize(columns));
  return framed(picture, g, static_cast<double>(rows.size()), names_of(rows, g, true),
                names_of(columns, g, false));
}

std::string axes_style(int64_t tokens) {
  const Geometry g(std::min(tokens, kMostAxisNames));
  const bool named = tokens <= kMostAxisNames;
  // A map is so wide that its names are legible. On a narrower page it has no names, and scrolls
  // when it is enlarged.
  std::string out = fmt::format(
      "<style>\n.maps {{ display: grid; gap: 0.8rem 1rem; margin: 0.5rem 0 1rem;\n"
      "  grid-template-columns: repeat(auto-fill, minmax(min(100%, {}px), 1fr)); }}\n"
      ".map {{ max-width: {}px; }}\n",
      named ? std::max(300.0, g.width(8)) : 300, named ? std::max(384.0, g.width(12)) : 560);
  if (named) {
    out += fmt::format(
        ".map.large .axes {{ min-width: {}px; }}\n"
        "@container (max-width: {}px) {{ .map:not(.large) .axes > svg {{ display: none; }}\n"
        "  .map:not(.large) .axes {{ display: block; }} }}\n",
        g.width(9), g.width(6.5));
  }
  return out +
         ".field { container-type: inline-size; overflow-x: auto; }\n"
         ".axes { display: grid; }\n.axes .top { grid-column: 2; }\n"
         "text.name { font-size: var(--font); fill: var(--soft); }\n"
         "text.name.end { text-anchor: end; }\n.tokens { position: absolute; }\n</style>\n";
}

}  // namespace bamtrain
