#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart_style.h"
#include "report/markup.h"

namespace bamtrain {

namespace {

constexpr double kBoldCharacter = 7.7;  // approximate width in a wide font
constexpr double kLabelHeight = 13, kMostLabelRoom = 120;

/// Characters, not bytes.
size_t length_of(const std::string& utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// The coordinates of a chart.
struct Frame {
  ChartAxes axes;
  const ChartStyle& look;

  double x(double v) const {
    return rounded(look.left + axes.x.share(v) * (look.right - look.left));
  }
  double y(double v) const {
    return rounded(look.bottom - axes.y.share(v) * (look.bottom - look.top));
  }
};

/// Styles by the classes of a page's style sheet.
class PageChartStyle : public ChartStyle {
 public:
  explicit PageChartStyle(const Chart& chart) {
    left = kChartLeft, right = kChartWidth - kChartRight, top = kChartTop, bottom = kChartBottom;
    width = kChartWidth;
    x_title = kChartHeight - 6;
    if (!chart.labels) return;
    double room = 0;
    for (const Series& s : chart.series) {
      room = std::max(room, kBoldCharacter * static_cast<double>(length_of(s.name)));
    }
    right -= std::min(room, kMostLabelRoom);
  }

  std::string attributes(Part part, int style) const override {
    return fmt::format(" class=\"{}\"", classes(part, style));
  }
  std::string line(int style, bool thin, bool /*faint*/) const override {
    return fmt::format(" class=\"{}{}\"", style_class(style), thin ? " thin" : "");
  }
  std::string marker(int style, double x, double y, const std::string& contents) const override {
    return fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\">{}</circle>\n",
                       style_class(style), x, y, contents);
  }

 private:
  static std::string classes(Part part, int style) {
    switch (part) {
      case Part::grid:
        return "grid";
      case Part::axis:
        return "axis";
      case Part::mark:
        return "mark";
      case Part::tick_x:
        return "tick x";
      case Part::tick_y:
        return "tick y";
      case Part::x_title:
        return "title";
      case Part::note:
        return "note";
      case Part::note_end:
        return "note end";
      case Part::note_middle:
        return "note middle";
      case Part::error:
        return "error " + style_class(style);
      case Part::band:
        return "band " + style_class(style);
    }
    return "";
  }
};

std::string line_of(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line{} x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", attributes, x1, y1, x2,
                     y2);
}

std::string text_of(double x, double y, const std::string& attributes, const std::string& text) {
  return fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n", attributes, x, y, escaped(text));
}

std::string marks(const Chart& chart, const Frame& frame) {
  const ChartStyle& look = frame.look;
  std::string out;
  double end = -INFINITY;  // end of the previous text; overlapping ones are skipped
  for (const Mark& m : chart.marks) {
    const double x = frame.x(m.x);
    out += line_of(x, look.top, x, look.bottom, look.attributes(Part::mark));
    if (look.notes_above) {
      const double half = look.character * static_cast<double>(length_of(m.text)) / 2;
      const double middle =
          std::clamp(x, look.left + half, std::max(look.left, look.width - 2 * half) + half);
      if (middle - half < end) continue;
      out += text_of(rounded(middle), rounded(look.top - look.drop),
                     look.attributes(Part::note_middle), m.text);
      end = middle + half;
    } else {
      const bool left = x > (look.left + look.right) / 2;
      out += text_of(left ? x - 4 : x + 4, look.top + 9,
                     look.attributes(left ? Part::note_end : Part::note), m.text);
    }
  }
  return out;
}

std::string grid(const Chart& chart, const Frame& frame) {
  const ChartStyle& look = frame.look;
  std::string out;
  for (const double v : ticks(frame.axes.y, look.most_y)) {
    const double y = frame.y(v);
    out += line_of(look.left, y, look.right, y, look.attributes(Part::grid));
    out += text_of(look.left - look.y_text, rounded(y + look.drop), look.attributes(Part::tick_y),
                   number_text(v));
  }
  const std::vector<double> chosen =
      chart.x_ticks.empty() ? ticks(frame.axes.x, look.most_x) : chart.x_ticks;
  double end = 0;  // end of the previous text; overlapping ones are skipped
  for (const double v : chosen) {
    const double x = frame.x(v);
    out += line_of(x, look.bottom, x, look.bottom + look.tick, look.attributes(Part::axis));
    const std::string text = number_text(v);
    const double half = look.character * static_cast<double>(text.size()) / 2;
    const double middle = std::min(x, look.width - half);  // not clipped at the right edge
    if (middle - half < end) continue;
    out += text_of(rounded(middle), look.bottom + look.x_text, look.attributes(Part::tick_x), text);
    end = middle + half + 2;
  }
  out += line_of(look.left, look.bottom, look.right, look.bottom, look.attributes(Part::axis));
  out += marks(chart, frame);
  out += text_of((look.left + look.right) / 2, look.x_title, look.attributes(Part::x_title),
                 chart.x_title);
  return out;
}

/// Text of marker `i`.
std::string note_of(const Series& s, size_t i) {
  if (i < s.notes.size()) return s.notes[i];
  return fmt::format("{}: {} at {}", s.name, number_text(s.points[i].y),
                     number_text(s.points[i].x));
}

/// A series' name and values as attributes of its element.
std::string values_of(const Series& s, const std::vector<Point>& points) {
  std::string out = fmt::format(" data-name=\"{}\" data-values=\"", escaped(s.name));
  for (size_t i = 0; i < points.size(); ++i) {
    out += fmt::format("{}{:.10g},{:.6g}", i == 0 ? "" : " ", points[i].x, points[i].y);
    if (i < s.errors.size() && std::isfinite(s.errors[i])) {
      out += fmt::format(",{:.6g}", s.errors[i]);
    }
  }
  return out + "\"";
}

/// What a series' error bars show.
const std::vector<double>& drawn_errors(const Series& s, bool paired) {
  return paired ? s.paired_errors : s.errors;
}

/// Error bars; clipped at the lower end of the axis.
std::string error_bars(const Series& s, const std::vector<double>& errors, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < std::min(errors.size(), s.points.size()); ++i) {
    if (!std::isfinite(errors[i])) continue;
    const Point& p = s.points[i];
    const double low = std::max(p.y - errors[i], frame.axes.y.low);
    out += line_of(frame.x(p.x), frame.y(low), frame.x(p.x), frame.y(p.y + errors[i]),
                   frame.look.attributes(Part::error, s.style));
  }
  return out;
}

std::string markers_of(const Series& s, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < s.points.size(); ++i) {
    out += frame.look.marker(s.style, frame.x(s.points[i].x), frame.y(s.points[i].y),
                             "<title>" + escaped(note_of(s, i)) + "</title>");
  }
  return out;
}

std::string coordinates(const std::vector<Point>& points, const Frame& frame) {
  std::string out;
  for (const Point& p : points) {
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", frame.x(p.x), frame.y(p.y));
  }
  return out;
}

/// The band of a line's spread; a bar for a single point. Clipped at the lower end of the axis.
std::string band(const Series& s, const Frame& frame, int columns) {
  if (s.spread.size() != s.points.size() || s.spread.empty()) return "";
  std::vector<Point> low, high;
  std::string values;
  for (size_t i = 0; i < s.spread.size(); ++i) {
    low.push_back({s.points[i].x, std::max(s.spread[i].low, frame.axes.y.low)});
    high.push_back({s.points[i].x, s.spread[i].high});
    values += fmt::format("{}{:.6g},{:.6g}", i == 0 ? "" : " ", s.spread[i].low, s.spread[i].high);
  }
  if (low.size() == 1) {
    return line_of(frame.x(low[0].x), frame.y(low[0].y), frame.x(high[0].x), frame.y(high[0].y),
                   frame.look.attributes(Part::error, s.style));
  }
  low = downsampled(low, frame.axes.x, columns);
  high = downsampled(high, frame.axes.x, columns);
  std::reverse(low.begin(), low.end());
  return fmt::format("<polygon{} data-spread=\"{}\" points=\"{} {}\"/>\n",
                     frame.look.attributes(Part::band, s.style), values, coordinates(high, frame),
                     coordinates(low, frame));
}

std::string draw(const Series& s, bool paired, const Frame& frame) {
  if (s.points.empty()) return "";
  const std::string bars = error_bars(s, drawn_errors(s, paired), frame);
  if (!s.line) {
    return bars + fmt::format("<g{}>\n", values_of(s, s.points)) + markers_of(s, frame) + "</g>\n";
  }
  const ChartStyle& look = frame.look;
  const auto columns = static_cast<int>((look.right - look.left) * look.columns);
  const bool thin = s.points.size() > static_cast<size_t>(columns);
  const std::vector<Point> drawn =
      s.markers ? s.points : downsampled(s.points, frame.axes.x, columns);
  const std::string faint =
      s.strength < 1 ? fmt::format(" stroke-opacity=\"{}\"", rounded(s.strength)) : "";
  std::string out =
      band(s, frame, columns) + bars +
      fmt::format("<polyline{}{}{} points=\"{}\"/>\n", look.line(s.style, thin, s.strength < 1),
                  values_of(s, drawn), faint, coordinates(drawn, frame));
  // A line of one point is invisible.
  if (s.markers || s.points.size() == 1) out += markers_of(s, frame);
  return out;
}

/// Names at the ends of lines, moved apart to avoid overlaps.
std::string labels(const Chart& chart, const Frame& frame) {
  struct Label {
    double y;
    const Series* series;
  };
  std::vector<Label> all;
  for (const Series& s : chart.series) {
    if (s.points.empty()) continue;
    const double y = frame.y(s.points.back().y);
    all.push_back({std::clamp(y, frame.look.top, frame.look.bottom), &s});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Label& a, const Label& b) { return a.y < b.y; });
  for (size_t i = 1; i < all.size(); ++i) {
    all[i].y = std::max(all[i].y, all[i - 1].y + kLabelHeight);
  }
  // Labels below the bottom move up, and push others up.
  double limit = frame.look.bottom;
  for (size_t i = all.size(); i-- > 0; limit -= kLabelHeight) all[i].y = std::min(all[i].y, limit);
  std::string out;
  for (const Label& l : all) {
    out += fmt::format("<text class=\"label {}\" x=\"{}\" y=\"{}\">{}</text>\n",
                       style_class(l.series->style), rounded(frame.look.right + 6),
                       rounded(l.y + 4), escaped(l.series->name));
  }
  return out;
}

}  // namespace

std::string style_class(int n) {
  const int dash = n / kChartColours % kChartDashes;
  return fmt::format("c{}{}", n % kChartColours, dash == 0 ? "" : fmt::format(" d{}", dash));
}

ChartAxes axes_of(const Chart& chart) {
  std::vector<double> x = chart.x_ticks, y;
  for (const Mark& m : chart.marks) x.push_back(m.x);
  for (const Series& s : chart.series) {
    for (const Point& p : s.points) {
      x.push_back(p.x);
      y.push_back(std::max(p.y, chart.y_floor));
    }
    const auto add = [&](double low, double high) {
      y.push_back(high);
      if (low > 0 || chart.y == Spacing::linear) y.push_back(low);
    };
    const std::vector<double>& errors = drawn_errors(s, chart.paired);
    for (size_t i = 0; i < std::min(errors.size(), s.points.size()); ++i) {
      if (!std::isfinite(errors[i])) continue;
      add(s.points[i].y - errors[i], s.points[i].y + errors[i]);
    }
    for (const Span& span : s.spread) add(span.low, span.high);
  }
  for (const Point& p : chart.others) {
    x.push_back(p.x);
    y.push_back(std::max(p.y, chart.y_floor));
  }
  if (chart.from_zero) y.push_back(0);
  ChartAxes axes = {axis_over(chart.x, x), axis_over(chart.y, y)};
  if (chart.from_zero) axes.y.low = 0;
  return axes;
}

std::string plot(const Chart& chart, const ChartStyle& look) {
  const Frame frame = {axes_of(chart), look};
  std::string out = grid(chart, frame);
  const bool cut = chart.y_floor > -1e300;
  if (cut) {  // a nested svg clips without needing a unique id
    out += fmt::format(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
        look.left, look.top, rounded(look.right - look.left), rounded(look.bottom - look.top));
  }
  for (const Series& s : chart.series) out += draw(s, chart.paired, frame);
  if (cut) out += "</svg>\n";
  return out;
}

std::string svg(const Chart& chart) {
  const PageChartStyle look(chart);
  // data-plot: the plot area, for the page's script.
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" "
      "aria-label=\"{}\" data-plot=\"{},{},{},{}\">\n",
      kChartWidth, kChartHeight, escaped(chart.title), look.left, rounded(look.right), look.top,
      look.bottom);
  out += plot(chart, look);
  if (chart.labels) out += labels(chart, {axes_of(chart), look});
  return out + "</svg>\n";
}

}  // namespace bamtrain
