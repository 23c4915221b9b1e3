#include "report/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"
#include "report/page.h"

namespace bamtrain {

std::string key_of(const Runs& runs, size_t n) {
  return fmt::format("<span class=\"key {}\"></span>{}", style_class(static_cast<int>(n)),
                     escaped(runs[n].name));
}

/// Legend of the runs' colours, if there are several runs.
std::string legend(const Runs& runs) {
  if (runs.size() < 2) return "";
  std::string out = "<p class=\"legend\">";
  for (size_t n = 0; n < runs.size(); ++n) out += "<span>" + key_of(runs, n) + "</span>\n";
  return out + "</p>\n";
}

std::string section(const std::string& title, const std::string& contents) {
  return contents.empty() ? "" : "<h2>" + title + "</h2>\n" + contents;
}

std::string grid_of(const std::string& figures) {
  return figures.empty() ? "" : "<div class=\"grid\">\n" + figures + "</div>\n";
}

std::string error_text(StandardError error, int decimals) {
  if (!error) return "";
  const std::string sign = "\u00a0\u00b1\u00a0";
  if (!std::isfinite(*error)) return sign + "-";
  return sign + (*error < 1000 ? fmt::format("{:.{}f}", *error, decimals) : number_text(*error, 2));
}

std::string errors_note(const char* clusters) {
  return fmt::format(
      "<p>\u00b1 is the standard error over the {} of this text. It does not include seed "
      "variance, and the difference of two models on the same text usually has a smaller one. "
      "\u201c-\u201d: no standard error, as there is only one document or sequence.</p>\n",
      clusters);
}

bool has_points(const Chart& chart) {
  return std::any_of(chart.series.begin(), chart.series.end(),
                     [](const Series& s) { return !s.points.empty(); });
}

std::string figure_of(const Chart& chart) {
  return has_points(chart) ? figure(chart.title, svg(chart)) : "";
}

std::string chart_name(const std::string& title) {
  std::string out;
  bool apart = false;  // separate from the previous word
  for (const char c : title) {
    const bool small = c >= 'a' && c <= 'z', capital = c >= 'A' && c <= 'Z';
    if (!small && !capital && !(c >= '0' && c <= '9') && static_cast<unsigned char>(c) < 0x80) {
      apart = true;
      continue;
    }
    if (apart && !out.empty()) out += '-';
    apart = false;
    out += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::string beside(const std::string& figure, const std::string& tables) {
  if (figure.empty() || tables.empty()) return figure.empty() ? tables : grid_of(figure);
  return "<div class=\"beside\">\n" + figure + "<div>\n" + tables + "</div>\n</div>\n";
}

}  // namespace bamtrain
