#include "report/terminal_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/axis.h"

namespace bamtrain {

namespace {

constexpr int kColumns = 64, kRows = 14;  // of the plot; the y axis takes 12 more columns
constexpr int kMargin = 10;

bool drawable(const Point& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0;
}

/// Printable ASCII; other characters have unknown width, or may control the terminal.
std::string plain(const std::string& text, size_t limit) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // continuation byte
    out += byte < 0x20 || byte > 0x7E ? '?' : c;
  }
  return out.size() <= limit ? out : out.substr(0, limit - 3) + "...";
}

/// The grid of characters, row 0 at the top.
class Canvas {
 public:
  Canvas(const Axis& x, const Axis& y) : x_(x), y_(y), rows_(kRows, std::string(kColumns, ' ')) {}

  int column(double x) const { return place(x_.share(x), kColumns); }
  int row(double y) const { return kRows - 1 - place(y_.share(y), kRows); }

  void line(const Point& a, const Point& b) {
    const int from = column(a.x), to = column(b.x);
    for (int c = from; c <= to; ++c) {
      const double f = from == to ? 0 : static_cast<double>(c - from) / (to - from);
      const double share = (1 - f) * y_.share(a.y) + f * y_.share(b.y);
      put(c, kRows - 1 - place(share, kRows), '.');
    }
  }
  void point(const Point& p, char letter) {
    const char there = text(row(p.y))[static_cast<size_t>(column(p.x))];
    put(column(p.x), row(p.y), there == ' ' || there == '.' || there == letter ? letter : '*');
  }
  const std::string& text(int row) const { return rows_[static_cast<size_t>(row)]; }

 private:
  static int place(double share, int n) {
    return std::min(static_cast<int>(std::clamp(share, 0.0, 1.0) * n), n - 1);
  }
  void put(int column, int row, char c) {
    rows_[static_cast<size_t>(row)][static_cast<size_t>(column)] = c;
  }

  Axis x_, y_;
  std::vector<std::string> rows_;
};

/// The texts of the x axis, each under its column; skips those that would touch the previous one.
std::string x_texts(const Canvas& canvas, const std::vector<double>& values) {
  std::string out;
  for (const double v : values) {
    const std::string text = number_text(v);
    const auto column = static_cast<size_t>(canvas.column(v)) + kMargin + 2;
    const size_t begin =
        std::min(column - std::min(column, text.size() / 2), kMostLine - text.size());
    if (!out.empty() && begin < out.size() + 1) continue;
    out.resize(begin, ' ');
    out += text;
  }
  return out + "\n";
}

}  // namespace

std::string terminal_plot(const std::string& title, const std::vector<PlotSeries>& series) {
  std::vector<std::vector<Point>> drawn;
  std::vector<double> x, y;
  bool any = false;
  for (const PlotSeries& s : series) {
    drawn.emplace_back();
    std::copy_if(s.points.begin(), s.points.end(), std::back_inserter(drawn.back()), drawable);
    for (const Point& p : drawn.back()) {
      x.push_back(p.x);
      y.push_back(p.y);
    }
    any |= drawn.back().size() >= 2;
  }
  if (!any) return "";
  std::sort(x.begin(), x.end());
  x.erase(std::unique(x.begin(), x.end()), x.end());

  const Axis y_axis = axis_over(Spacing::logarithmic, y);
  Canvas canvas(axis_over(Spacing::logarithmic, x), y_axis);
  for (const std::vector<Point>& points : drawn) {
    for (size_t i = 1; i < points.size(); ++i) canvas.line(points[i - 1], points[i]);
  }
  const auto letter = [](size_t n) { return static_cast<char>('a' + n % 26); };
  for (size_t n = 0; n < drawn.size(); ++n) {
    for (const Point& p : drawn[n]) canvas.point(p, letter(n));
  }

  std::vector<std::string> left(kRows);
  for (const double v : ticks(y_axis, 7)) left[static_cast<size_t>(canvas.row(v))] = number_text(v);
  std::string out = plain(title, kMostLine) + "\n";
  for (int row = 0; row < kRows; ++row) {
    const std::string& text = left[static_cast<size_t>(row)];
    std::string line =
        fmt::format("{:>{}} {}{}", text, kMargin, text.empty() ? '|' : '+', canvas.text(row));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  std::string axis(kColumns, '-');
  for (const double v : x) axis[static_cast<size_t>(canvas.column(v))] = '+';
  out += fmt::format("{:>{}} +{}\n", "", kMargin, axis);
  out += x_texts(canvas, x);
  for (size_t n = 0; n < series.size(); ++n) {
    out += fmt::format("{:>{}} {} {}\n", "", kMargin, letter(n),
                       plain(series[n].name, kMostLine - kMargin - 3));
  }
  return out;
}

}  // namespace bamtrain
