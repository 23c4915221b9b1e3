#pragma once
// A chart as SVG: axes, ticks, lines, points, labels. Independent of runs.

#include <string>
#include <vector>

#include "report/axis.h"
#include "report/downsample.h"

namespace bamtrain {

/// Number of colour-blind-safe colours before they repeat with dashes: classes c0, c1, ... of a
/// page's style sheet, dashes d1, d2.
inline constexpr int kChartColours = 7, kChartDashes = 3;

/// "c3 d1": the classes of everything drawn for the n-th run.
std::string style_class(int n);

/// From `low` to `high`.
struct Span {
  double low = 0, high = 0;
};

struct Series {
  std::string name;  // shown near the pointer, and at the line's end if `labels`
  int style = 0;     // see style_class
  bool line = true, markers = false;
  double strength = 1;  // opacity of the line
  std::vector<Point> points;
  std::vector<std::string> notes;          // text of each marker; empty: coordinates
  std::vector<double> errors = {};         // error bars, both sides; NaN: unknown; empty: no bars
  std::vector<Span> spread = {};           // band around each point of a line; empty: no band
  std::vector<double> paired_errors = {};  // as errors: of differences from another series
};

/// Chart::bars of Series::errors.
inline constexpr const char* kBarsOfValues = "bars: \u00b1 standard error over the evaluation text";

/// A dashed vertical line.
struct Mark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;                  // for readers who cannot see the chart
  std::string x_title, y_title = {};  // a page has no y_title: the title is above
  Spacing x = Spacing::linear, y = Spacing::linear;
  std::vector<Series> series;
  std::vector<double> x_ticks;  // empty: round numbers
  std::vector<Mark> marks;
  std::vector<Point> others;  // of charts with the same axes; the axes hold them too
  bool from_zero = false;     // the y axis begins at 0
  bool labels = false;        // names at the ends of lines
  double y_floor = -1e300;    // lower limit of the y axis; lower values are clipped
  std::string key = {};       // legend text if all series are of one run; empty: name
  bool x_measured = false;    // x is measured too: no two runs share x values
  bool of_losses = false;     // y is exp of a loss: means are taken of the losses
  bool paired = false;        // error bars show paired_errors instead of errors
  std::string bars = {};      // what the error bars show
};

/// The chart's coordinates. A value is drawn at kChartLeft + share (right - kChartLeft) and at
/// kChartBottom - share (kChartBottom - kChartTop), rounded to hundredths; right is kChartWidth -
/// kChartRight minus the room for labels.
inline constexpr double kChartWidth = 400, kChartHeight = 240;
inline constexpr double kChartLeft = 50, kChartRight = 12, kChartTop = 10, kChartBottom = 202;

/// The chart's axes, for other renderers.
struct ChartAxes {
  Axis x, y;
};
ChartAxes axes_of(const Chart& chart);

/// Returns an <svg> element. Lines without markers are downsampled to its columns. Attribute
/// data-values repeats the drawn values, "x,y" or "x,y,error" separated by spaces: on a series'
/// polyline, or else on the <g> around its circles. A band's "low,high" are in data-spread.
std::string svg(const Chart& chart);

}  // namespace bamtrain
