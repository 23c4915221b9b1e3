#pragma once
// A small character plot, at most 80 columns wide. ASCII without colours, so that it looks the same
// on every terminal, in a pipe and in a log.

#include <string>
#include <vector>

#include "report/downsample.h"

namespace bamtrain {

/// Maximum columns of a plot and of text printed with it.
inline constexpr size_t kMostLine = 80;

struct PlotSeries {
  std::string name;
  std::vector<Point> points;  // ascending in x
};

/// Both axes are logarithmic, with ticks at the points' x. Points of the n-th series are its letter
/// (a, b, ...), an asterisk marks several in one place, and dots connect them. Names are listed
/// below, as ASCII. Points that are not positive and finite are skipped; "" if no series has two
/// others.
std::string terminal_plot(const std::string& title, const std::vector<PlotSeries>& series);

}  // namespace bamtrain
