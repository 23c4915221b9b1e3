#pragma once
// A small plot in characters, at most 80 columns wide: no colour and nothing but ASCII, so that it
// looks the same on every terminal, in a pipe and in a log.

#include <string>
#include <vector>

#include "report/downsample.h"

namespace bamtrain {

/// The columns of a plot, and of whatever else is printed beside one.
inline constexpr size_t kMostLine = 80;

struct PlotSeries {
  std::string name;
  std::vector<Point> points;  // ascending in x
};

/// Both axes logarithmic, ticks at the points' x. Points of the n-th series are its letter (a, b,
/// ...), an asterisk those of several in one place, dots lie between them; the names stand below,
/// as ASCII. Points that are not above 0 and finite are left out; "" where no series has two
/// others.
std::string terminal_plot(const std::string& title, const std::vector<PlotSeries>& series);

}  // namespace bamtrain
