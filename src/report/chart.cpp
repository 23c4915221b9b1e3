#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"

namespace bamtrain {

namespace {

constexpr double kCharacter = 7, kBoldCharacter = 7.7;  // widths, about, in a wide font
constexpr double kLabelHeight = 13, kMostLabelRoom = 120;
constexpr int kTicksX = 6, kTicksY = 7;

double rounded(double v) { return std::round(v * 100) / 100; }

/// Characters, not bytes.
size_t length_of(const std::string& utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// The coordinates of a chart.
struct Frame {
  ChartAxes axes;
  double right = kChartWidth - kChartRight;

  double x(double v) const { return rounded(kChartLeft + axes.x.share(v) * (right - kChartLeft)); }
  double y(double v) const {
    return rounded(kChartBottom - axes.y.share(v) * (kChartBottom - kChartTop));
  }
};

Frame frame_of(const Chart& chart) {
  Frame frame = {axes_of(chart)};
  if (chart.labels) {
    double room = 0;
    for (const Series& s : chart.series) {
      room = std::max(room, kBoldCharacter * static_cast<double>(length_of(s.name)));
    }
    frame.right -= std::min(room, kMostLabelRoom);
  }
  return frame;
}

std::string line_of(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", style, x1,
                     y1, x2, y2);
}

std::string text_of(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, x, y,
                     escaped(text));
}

std::string grid(const Chart& chart, const Frame& frame) {
  std::string out;
  for (const double v : ticks(frame.axes.y, kTicksY)) {
    const double y = frame.y(v);
    out += line_of(kChartLeft, y, frame.right, y, "grid");
    out += text_of(kChartLeft - 6, y + 4, "tick y", number_text(v));
  }
  const std::vector<double> chosen =
      chart.x_ticks.empty() ? ticks(frame.axes.x, kTicksX) : chart.x_ticks;
  double end = 0;  // of the tick before: what would touch it goes without a text
  for (const double v : chosen) {
    const double x = frame.x(v);
    out += line_of(x, kChartBottom, x, kChartBottom + 4, "axis");
    const std::string text = number_text(v);
    const double half = kCharacter * static_cast<double>(text.size()) / 2;
    const double middle = std::min(x, kChartWidth - half);  // whole, at the right edge too
    if (middle - half < end) continue;
    out += text_of(middle, kChartBottom + 16, "tick x", text);
    end = middle + half + 2;
  }
  out += line_of(kChartLeft, kChartBottom, frame.right, kChartBottom, "axis");
  for (const Mark& m : chart.marks) {
    const double x = frame.x(m.x);
    out += line_of(x, kChartTop, x, kChartBottom, "mark");
    const bool left = x > (kChartLeft + frame.right) / 2;
    out += text_of(left ? x - 4 : x + 4, kChartTop + 9, left ? "note end" : "note", m.text);
  }
  out += text_of((kChartLeft + frame.right) / 2, kChartHeight - 6, "title", chart.x_title);
  return out;
}

/// What marker `i` says of itself.
std::string note_of(const Series& s, size_t i) {
  if (i < s.notes.size()) return s.notes[i];
  return fmt::format("{}: {} at {}", s.name, number_text(s.points[i].y),
                     number_text(s.points[i].x));
}

/// The points of which the values are known, as attributes of a series' element.
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

/// The bars of errors; one that leaves a logarithmic axis ends with it.
std::string error_bars(const Series& s, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < std::min(s.errors.size(), s.points.size()); ++i) {
    if (!std::isfinite(s.errors[i])) continue;
    const Point& p = s.points[i];
    const double low = std::max(p.y - s.errors[i], frame.axes.y.low);
    out += fmt::format("<line class=\"error {}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
                       style_class(s.style), frame.x(p.x), frame.y(low), frame.x(p.x),
                       frame.y(p.y + s.errors[i]));
  }
  return out;
}

std::string circles_of(const Series& s, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < s.points.size(); ++i) {
    out +=
        fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\"><title>{}</title></circle>\n",
                    style_class(s.style), frame.x(s.points[i].x), frame.y(s.points[i].y),
                    escaped(note_of(s, i)));
  }
  return out;
}

std::string draw(const Series& s, const Frame& frame) {
  if (s.points.empty()) return "";
  const std::string bars = error_bars(s, frame);
  if (!s.line) {
    return bars + fmt::format("<g{}>\n", values_of(s, s.points)) + circles_of(s, frame) + "</g>\n";
  }
  const auto columns = static_cast<int>(frame.right - kChartLeft);
  const bool thin = s.points.size() > static_cast<size_t>(columns);
  const std::vector<Point> drawn = s.markers ? s.points : thinned(s.points, frame.axes.x, columns);
  std::string points;
  for (const Point& p : drawn) {
    points += fmt::format("{}{},{}", points.empty() ? "" : " ", frame.x(p.x), frame.y(p.y));
  }
  const std::string faint =
      s.strength < 1 ? fmt::format(" stroke-opacity=\"{}\"", rounded(s.strength)) : "";
  std::string out =
      bars + fmt::format("<polyline class=\"{}{}\"{}{} points=\"{}\"/>\n", style_class(s.style),
                         thin ? " thin" : "", values_of(s, drawn), faint, points);
  // A line of one point shows nothing.
  if (s.markers || s.points.size() == 1) out += circles_of(s, frame);
  return out;
}

/// Names at the ends of lines, moved apart where they would overlap.
std::string labels(const Chart& chart, const Frame& frame) {
  struct Label {
    double y;
    const Series* series;
  };
  std::vector<Label> all;
  for (const Series& s : chart.series) {
    if (s.points.empty()) continue;
    const double y = frame.y(s.points.back().y);
    all.push_back({std::clamp(y, kChartTop, kChartBottom), &s});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Label& a, const Label& b) { return a.y < b.y; });
  for (size_t i = 1; i < all.size(); ++i) {
    all[i].y = std::max(all[i].y, all[i - 1].y + kLabelHeight);
  }
  // Those pushed out at the bottom push back up.
  double limit = kChartBottom;
  for (size_t i = all.size(); i-- > 0; limit -= kLabelHeight) all[i].y = std::min(all[i].y, limit);
  std::string out;
  for (const Label& l : all) {
    out += fmt::format("<text class=\"label {}\" x=\"{}\" y=\"{}\">{}</text>\n",
                       style_class(l.series->style), rounded(frame.right + 6), rounded(l.y + 4),
                       escaped(l.series->name));
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
    for (size_t i = 0; i < std::min(s.errors.size(), s.points.size()); ++i) {
      if (!std::isfinite(s.errors[i])) continue;
      y.push_back(s.points[i].y + s.errors[i]);
      const double low = s.points[i].y - s.errors[i];
      if (low > 0 || chart.y == Spacing::linear) y.push_back(low);
    }
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

std::string svg(const Chart& chart) {
  const Frame frame = frame_of(chart);
  // data-plot: where the page's script finds what lies between the axes.
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" "
      "aria-label=\"{}\" data-plot=\"{},{},{},{}\">\n",
      kChartWidth, kChartHeight, escaped(chart.title), kChartLeft, rounded(frame.right), kChartTop,
      kChartBottom);
  out += grid(chart, frame);
  const bool cut = chart.y_floor > -1e300;
  if (cut) {  // a nested svg cuts off what leaves it, without a name that must be unique
    out += fmt::format(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
        kChartLeft, kChartTop, rounded(frame.right - kChartLeft), kChartBottom - kChartTop);
  }
  for (const Series& s : chart.series) out += draw(s, frame);
  if (cut) out += "</svg>\n";
  if (chart.labels) out += labels(chart, frame);
  return out + "</svg>\n";
}

}  // namespace bamtrain
