#include "report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "report/chart_style.h"
#include "report/markup.h"
#include "report/palette.h"

namespace bamtrain {

namespace {

constexpr const char* kFigureBeginning =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bamtrain-figure\"";

// Points of 1/72 inch.
constexpr double kLine = 1.2, kThinLine = 0.7;
constexpr double kPlotShare = 0.55;  // height of the plot / width of the figure
constexpr double kRow = 10, kSample = 18, kGap = 3, kApart = 10;  // of the legend
constexpr double kTickRoomX = 34, kTickRoomY = 18;                // minimum room per tick

// Dashes of lines; the first is solid. The numbers of shapes, dashes and colours (7) are coprime.
constexpr std::array<const char*, 4> kDashes = {"", "4 1.6", "1 1.4", "5 1.4 1 1.4"};
constexpr int kShapes = 6;

/// Approximate width in points, for rather wide sans-serif fonts.
double width_of(const std::string& utf8, double size) {
  double ems = 0;
  for (const char c : utf8) {
    const auto u = static_cast<unsigned char>(c);
    if ((u & 0xC0) == 0x80) continue;  // inside of a character
    if (u >= 0xE0) {
      ems += 1;
    } else if (std::string_view("iljtfrI.,:;'|!()[]/ -").find(c) != std::string_view::npos) {
      ems += 0.38;
    } else if (std::string_view("mwMW@%").find(c) != std::string_view::npos) {
      ems += 0.95;
    } else {
      ems += c >= 'A' && c <= 'Z' ? 0.7 : 0.61;
    }
  }
  return ems * size;
}

/// The longest beginning of `text` that fits.
std::string fitting(const std::string& text, double size, double most) {
  if (width_of(text, size) <= most) return text;
  std::string out = text;
  while (!out.empty() && width_of(out, size) + size > most) {
    while (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80)
      out.pop_back();
    out.pop_back();
  }
  return out + "\u2026";
}

std::string stroke(int style) {
  const auto n = static_cast<size_t>(style % kChartColours);
  return fmt::format(" class=\"s{}\" stroke=\"{}\"", n, kLight.series[n]);
}

std::string fill(int style) {
  const auto n = static_cast<size_t>(style % kChartColours);
  return fmt::format(" class=\"f{}\" fill=\"{}\"", n, kLight.series[n]);
}

std::string text_attributes(const char* name, const char* colour, double size, const char* anchor) {
  return fmt::format(" class=\"{}\" fill=\"{}\" font-size=\"{}\" text-anchor=\"{}\"", name, colour,
                     size, anchor);
}

std::string dashes(int style) {
  const std::string of = kDashes[static_cast<size_t>(style) % kDashes.size()];
  return of.empty() ? "" : " stroke-dasharray=\"" + of + "\"";
}

/// Marker shapes of about equal size.
std::string shape(int style, double x, double y) {
  const auto path = [&](std::initializer_list<Point> corners) {
    std::string out;
    for (const Point& p : corners) {
      out += fmt::format("{}{} {}", out.empty() ? "M" : "L", rounded(x + p.x), rounded(y + p.y));
    }
    return out + "Z";
  };
  switch (style % kShapes) {
    case 0:  // a circle
      return fmt::format("M{0} {1}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0Z", rounded(x - 2), y);
    case 1:
      return path({{-1.8, -1.8}, {1.8, -1.8}, {1.8, 1.8}, {-1.8, 1.8}});
    case 2:
      return path({{0, -2.5}, {2.3, 1.6}, {-2.3, 1.6}});
    case 3:
      return path({{0, -2.6}, {2.6, 0}, {0, 2.6}, {-2.6, 0}});
    case 4:
      return path({{0, 2.5}, {-2.3, -1.6}, {2.3, -1.6}});
    default: {  // a cross
      constexpr double w = 0.75, l = 2.4;
      return path({{-w, -l},
                   {w, -l},
                   {w, -w},
                   {l, -w},
                   {l, w},
                   {w, w},
                   {w, l},
                   {-w, l},
                   {-w, w},
                   {-l, w},
                   {-l, -w},
                   {-w, -w}});
    }
  }
}

/// An entry of the legend.
struct Key {
  int style = 0;
  bool line = false, markers = false, band = false;
  std::string text;
};

/// One legend key per style: the name of its strongest line, or Chart::key for a single style.
std::vector<Key> keys_of(const Chart& chart) {
  std::vector<Key> out;
  std::vector<double> strengths;
  for (const Series& s : chart.series) {
    auto at =
        std::find_if(out.begin(), out.end(), [&](const Key& k) { return k.style == s.style; });
    if (at == out.end()) {
      at = out.insert(out.end(), {s.style, false, false, false, s.name});
      strengths.push_back(s.strength);
    }
    double& strength = strengths[static_cast<size_t>(at - out.begin())];
    if (s.strength > strength) at->text = s.name, strength = s.strength;
    at->line |= s.line;
    at->markers |= s.markers || !s.line || s.points.size() == 1;
    at->band |= !s.spread.empty();
  }
  std::sort(out.begin(), out.end(), [](const Key& a, const Key& b) { return a.style < b.style; });
  if (!chart.key.empty() && out.size() == 1) out[0].text = chart.key;
  return out;
}

/// Layout in points.
class FigureChartStyle : public ChartStyle {
 public:
  FigureChartStyle(const Chart& chart, double wide, bool dashed) : dashed_(dashed) {
    width = wide;
    columns = 4;
    character = 0.61 * kSmallText;
    tick = 2.5;
    x_text = tick + 7.5;
    y_text = 3;
    drop = 2.5;
    notes_above = true;
    const double height = std::round(kPlotShare * wide);
    most_x = std::max(2, static_cast<int>(wide / kTickRoomX));
    most_y = std::max(2, static_cast<int>(height / kTickRoomY));
    double room = 0;
    for (const double v : ticks(axes_of(chart).y, most_y)) {
      room = std::max(room, width_of(number_text(v), kSmallText));
    }
    left = rounded(kEdge + kText + kGap + room + y_text);
    right = wide - 3 * kEdge;
    top = kEdge;
    if (!chart.marks.empty()) top += kSmallText + drop;
    bottom = top + height;
    x_title = bottom + x_text + kText + 2;
  }

  /// Moves the plot down, to make room above it.
  void lower(double by) {
    for (double* y : {&top, &bottom, &x_title}) *y += by;
  }

  std::string attributes(Part part, int style) const override {
    switch (part) {
      case Part::grid:
        return rule("rule", kLight.rule, 0.5);
      case Part::axis:
        return rule("axis", kLight.soft, 0.6);
      case Part::mark:
        return rule("axis", kLight.soft, 0.6) + " stroke-dasharray=\"2 2\"";
      case Part::tick_x:
      case Part::note_middle:
        return text_attributes("soft", kLight.soft, kSmallText, "middle");
      case Part::tick_y:
      case Part::note_end:
        return text_attributes("soft", kLight.soft, kSmallText, "end");
      case Part::note:
        return text_attributes("soft", kLight.soft, kSmallText, "start");
      case Part::x_title:
        return text_attributes("ink", kLight.ink, kText, "middle");
      case Part::error:
        return stroke(style) + " stroke-width=\"0.7\"";
      case Part::band:
        return fill(style) + " fill-opacity=\"0.2\"";
    }
    return "";
  }
  std::string line(int style, bool thin, bool faint) const override {
    return fmt::format(" fill=\"none\"{} stroke-width=\"{}\" stroke-linejoin=\"round\"{}",
                       stroke(style), thin || faint ? kThinLine : kLine,
                       dashed_ && !faint ? dashes(style) : "");
  }
  std::string marker(int style, double x, double y, const std::string& contents) const override {
    return fmt::format("<path{} d=\"{}\">{}</path>\n", fill(style), shape(style, x, y), contents);
  }

 private:
  static std::string rule(const char* name, const char* colour, double wide) {
    return fmt::format(" class=\"{}\" stroke=\"{}\" stroke-width=\"{}\"", name, colour, wide);
  }

  bool dashed_;  // dash strong lines: no markers distinguish them
};

/// The legend's elements, in rows from the top, and their height.
struct Legend {
  std::string elements;
  double height = 0;
};

Legend legend_of(const std::vector<Key>& keys, const ChartStyle& look) {
  if (keys.empty()) return {};
  Legend out;
  double x = look.left, y = kEdge + kRow / 2;
  for (const Key& key : keys) {
    const std::string text =
        fitting(key.text, kText, look.width - look.left - kSample - kGap - kEdge);
    const double wide = kSample + kGap + width_of(text, kText);
    if (x > look.left && x + wide > look.width - kEdge) x = look.left, y += kRow;
    const double end = rounded(x + kSample), middle = rounded(x + kSample / 2);
    if (key.band) {
      out.elements += fmt::format("<rect{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"6\"/>\n",
                                  look.attributes(Part::band, key.style), x, y - 3, kSample);
    }
    if (key.line) {
      out.elements += fmt::format("<polyline{} points=\"{},{} {},{}\"/>\n",
                                  look.line(key.style, false, false), x, y, end, y);
    }
    if (key.markers) out.elements += look.marker(key.style, middle, y, "");
    out.elements += fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n",
                                text_attributes("ink", kLight.ink, kText, "start"),
                                rounded(end + kGap), y + 2.8, escaped(text));
    x = rounded(x + wide + kApart);
  }
  out.height = y + kRow / 2;
  return out;
}

/// For viewers with a dark theme: style sheet rules override attributes of elements.
std::string dark_rules() {
  std::string out = fmt::format(
      "<style>@media (prefers-color-scheme: dark) {{\n.paper {{ fill: {} }} .ink {{ fill: {} }} "
      ".soft {{ fill: {} }} .rule {{ stroke: {} }} .axis {{ stroke: {} }}\n",
      kDark.paper, kDark.ink, kDark.soft, kDark.rule, kDark.soft);
  for (size_t i = 0; i < kDark.series.size(); ++i) {
    out += fmt::format(".s{0} {{ stroke: {1} }} .f{0} {{ fill: {1} }}\n", i, kDark.series[i]);
  }
  return out + "}</style>\n";
}

}  // namespace

std::string figure_svg(const Chart& chart, double millimetres) {
  require(millimetres >= kLeastFigureWidth && millimetres <= kMostFigureWidth, "a figure's width");
  const double width = rounded(millimetres / 25.4 * 72);
  const bool points = std::all_of(chart.series.begin(), chart.series.end(),
                                  [](const Series& s) { return s.markers || !s.line; });
  const std::vector<Key> keys = keys_of(chart);
  FigureChartStyle look(chart, width, !points && keys.size() > 1);
  const bool told = keys.size() > 1 || !chart.key.empty() || (!keys.empty() && keys[0].band);
  const Legend legend = told ? legend_of(keys, look) : Legend();
  look.lower(legend.height);
  std::string bars;
  double end = look.x_title;
  if (!chart.bars.empty()) {
    end += kSmallText + look.drop;
    bars = fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n",
                       text_attributes("soft", kLight.soft, kSmallText, "start"), rounded(kEdge),
                       rounded(end), escaped(fitting(chart.bars, kSmallText, width - 2 * kEdge)));
  }
  const double height = rounded(end + 2.5);
  const std::string& y_title = chart.y_title.empty() ? chart.title : chart.y_title;
  std::string elements = legend.elements + plot(chart, look) + bars;
  const double middle = rounded((look.top + look.bottom) / 2), x = kEdge + kText * 0.8;
  elements += fmt::format("<text{} transform=\"translate({} {}) rotate(-90)\">{}</text>\n",
                          text_attributes("ink", kLight.ink, kText, "middle"), x, middle,
                          escaped(fitting(y_title, kText, height)));
  return figure_file(chart.title, millimetres, width, height, elements);
}

std::string figure_file(const std::string& label, double millimetres, double width, double height,
                        const std::string& elements) {
  std::string out = fmt::format(
      "{} width=\"{}mm\" height=\"{}mm\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n",
      kFigureBeginning, rounded(millimetres), rounded(height / 72 * 25.4), width, height,
      escaped(label));
  out += dark_rules();
  out += fmt::format("<rect class=\"paper\" fill=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     kLight.paper, width, height);
  return out + elements + "</svg>\n";
}

bool is_figure_svg(std::string_view text) { return text.starts_with(kFigureBeginning); }

}  // namespace bamtrain
