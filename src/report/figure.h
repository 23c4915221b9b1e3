#pragma once
// A chart of a report as a standalone figure for a paper: SVG without style sheets, scripts or
// fonts, in print units.

#include <string>
#include <string_view>

#include "report/chart.h"

namespace bamtrain {

/// Millimetres: a column of most two-column papers, and limits.
inline constexpr double kFigureWidth = 84, kLeastFigureWidth = 40, kMostFigureWidth = 400;

/// Points of 1/72 inch: text heights, and the margin at the figure's edges.
inline constexpr double kText = 8, kSmallText = 7, kEdge = 2;

/// An SVG file `millimetres` wide, in points of 1/72 inch; texts are 8 and 7 points high at any
/// width. The legend is above, titles are at the axes. Series can be distinguished without colours:
/// lines by dashes, points by shape. Light, on white; dark for viewers that prefer that and support
/// media queries. Deterministic: equal charts give equal bytes. REQUIRES: within the limits.
std::string figure_svg(const Chart& chart, double millimetres = kFigureWidth);

/// Such a file around `elements`, in points: the same background, font and rules for dark viewers,
/// with classes paper, ink, soft, rule, axis, s0 and f0 to s6 and f6 (palette.h). `label`: for
/// readers who cannot see it.
std::string figure_file(const std::string& label, double millimetres, double width, double height,
                        const std::string& elements);

/// Whether `text` begins like such a figure.
bool is_figure_svg(std::string_view text);

}  // namespace bamtrain
