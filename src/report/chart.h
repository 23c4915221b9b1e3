#pragma once
// A chart as SVG: axes, ticks, lines, points, labels. Knows nothing of runs.

#include <string>
#include <vector>

#include "report/axis.h"
#include "report/downsample.h"

namespace bamtrain {

/// Colours that the colour-blind tell apart, before they repeat dashed: classes c0, c1, ... of a
/// page's style sheet, dashes d1, d2.
inline constexpr int kChartColours = 7, kChartDashes = 3;

/// "c3 d1": how everything that belongs to the n-th run is drawn.
std::string style_class(int n);

/// From `low` to `high`.
struct Span {
  double low = 0, high = 0;
};

struct Series {
  std::string name;  // shown while the pointer is near, and at the line's end where `labels`
  int style = 0;     // see style_class
  bool line = true, markers = false;
  double strength = 1;  // opacity of the line
  std::vector<Point> points;
  std::vector<std::string> notes;   // what a marker says of itself; empty: coordinates
  std::vector<double> errors = {};  // of markers, to both sides; NaN: unknown; empty: none
  std::vector<Span> spread = {};    // of each point of a line, a band around it; empty: none
};

/// A dashed vertical line.
struct Mark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;                  // for readers who do not see it
  std::string x_title, y_title = {};  // of y none on a page, where the title stands above
  Spacing x = Spacing::linear, y = Spacing::linear;
  std::vector<Series> series;
  std::vector<double> x_ticks;  // empty: round numbers
  std::vector<Mark> marks;
  std::vector<Point> others;  // of charts with the same axes: these hold them too
  bool from_zero = false;     // the y axis begins at 0
  bool labels = false;        // names at the ends of lines
  double y_floor = -1e300;    // the y axis begins here at the lowest; what is below is cut off
  std::string key = {};       // a legend's, where all series are one run's; empty: their name
  bool x_measured = false;    // x is measured too: no two runs share theirs
  bool of_losses = false;     // y is exp of a loss: means are of these
};

/// The picture's coordinates. A value lies at kLeft + share (right - kLeft) and at
/// kBottom - share (kBottom - kTop), rounded to hundredths; right is kWidth - kRight, less the room
/// of labels.
inline constexpr double kChartWidth = 400, kChartHeight = 240;
inline constexpr double kChartLeft = 50, kChartRight = 12, kChartTop = 10, kChartBottom = 202;

/// Its axes, for those who draw the same by other means.
struct ChartAxes {
  Axis x, y;
};
ChartAxes axes_of(const Chart& chart);

/// An <svg> element. Lines without markers are thinned to its columns. What is drawn of a series is
/// in an attribute data-values too, "x,y" or "x,y,error" with a space between points: of its
/// polyline, or where it has none of the <g> around its circles; a band's "low,high" in
/// data-spread.
std::string svg(const Chart& chart);

}  // namespace bamtrain
