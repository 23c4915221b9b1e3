#pragma once
// Style and layout of a chart: what differs between charts on a page and standalone figures.

#include <string>

#include "report/chart.h"

namespace bamtrain {

enum class Part {
  grid,
  axis,
  mark,
  tick_x,  // tick labels
  tick_y,
  x_title,
  note,  // a mark's text, on its right
  note_end,
  note_middle,
  error,
  band
};

class ChartStyle {
 public:
  virtual ~ChartStyle() = default;

  // In the chart's units. A value is drawn at left + share (right - left) and at bottom - share
  // (bottom - top), rounded to hundredths.
  double left = 0, right = 0, top = 0, bottom = 0;
  double width = 0;             // limit of the x axis's texts
  double columns = 1;           // pixel columns per unit, for downsampling lines
  int most_x = 6, most_y = 7;   // most ticks per axis
  double character = 7;         // approximate character width in the x axis's texts
  double tick = 4;              // length of a tick
  double x_text = 16;           // baseline of a tick's text, below the axis
  double y_text = 6, drop = 4;  // offset of the y axis's texts: left and down
  double x_title = 234;         // baseline of the x axis's title
  bool notes_above = false;     // marks' texts above the plot instead of inside

  /// Attributes of a part in the style of a run, each preceded by a space.
  virtual std::string attributes(Part part, int style = 0) const = 0;
  /// Attributes of a series' line. thin: more points than columns; faint: Series::strength < 1.
  virtual std::string line(int style, bool thin, bool faint) const = 0;
  /// A marker at (x, y) that contains `contents`.
  virtual std::string marker(int style, double x, double y, const std::string& contents) const = 0;
};

/// The elements of a chart inside <svg>, without labels.
std::string plot(const Chart& chart, const ChartStyle& look);

}  // namespace bamtrain
