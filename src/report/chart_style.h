#pragma once
// Style and layout of a chart: what charts on a page and figures of their own do not share.

#include <string>

#include "report/chart.h"

namespace bamtrain {

enum class Part {
  grid,
  axis,
  mark,
  tick_x,  // texts beside the axes
  tick_y,
  x_title,
  note,  // a mark's text, to its right
  note_end,
  note_middle,
  error,
  band
};

class ChartStyle {
 public:
  virtual ~ChartStyle() = default;

  // In the picture's units. A value lies at left + share (right - left) and at
  // bottom - share (bottom - top), rounded to hundredths.
  double left = 0, right = 0, top = 0, bottom = 0;
  double width = 0;             // no text beside the x axis goes beyond it
  double columns = 1;           // for a line's points, per unit
  int most_x = 6, most_y = 7;   // ticks
  double character = 7;         // the width of one of the x axis's texts, about
  double tick = 4;              // its length
  double x_text = 16;           // the baseline of a tick's text, below the axis
  double y_text = 6, drop = 4;  // a tick's text of the y axis: so far from it, so far lower
  double x_title = 234;         // the baseline of the x axis's title
  bool notes_above = false;     // texts of marks: above the plot instead of in it

  /// Attributes, each after a space, of a part; of what belongs to the run of that style.
  virtual std::string attributes(Part part, int style = 0) const = 0;
  /// Of a series' line: of more points than columns; not as strong as others (Series::strength).
  virtual std::string line(int style, bool thin, bool faint) const = 0;
  /// A marker around (x, y) that holds `contents`.
  virtual std::string marker(int style, double x, double y, const std::string& contents) const = 0;
};

/// The elements between the <svg> and the labels of a chart.
std::string plot(const Chart& chart, const ChartStyle& look);

}  // namespace bamtrain
