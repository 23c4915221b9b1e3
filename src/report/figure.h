#pragma once
// One chart of a report as a picture of its own, for a paper: SVG that needs no style sheet, script
// or font, in print's units.

#include <string>
#include <string_view>

#include "report/chart.h"

namespace bamtrain {

/// Millimetres: a column of most papers in two, and limits.
inline constexpr double kFigureWidth = 84, kLeastFigureWidth = 40, kMostFigureWidth = 400;

/// Points of 1/72 inch: the heights of texts, and the room at a picture's edges.
inline constexpr double kText = 8, kSmallText = 7, kEdge = 2;

/// An SVG file `millimetres` wide, in points of 1/72 inch; texts are 8 and 7 points high at any
/// width. Legend above, titles at the axes, series told apart without colours too: lines by dashes,
/// points by their shape. Light, on white; dark to viewers that prefer that, and know media
/// queries. The same bytes for the same chart. REQUIRES: within the limits.
std::string figure_svg(const Chart& chart, double millimetres = kFigureWidth);

/// Such a file around `elements`, in points: the same paper, font and rules for dark viewers, whose
/// classes are paper, ink, soft, rule, axis, s0 and f0 to s6 and f6 (palette.h). `label`: for
/// readers who do not see it.
std::string figure_file(const std::string& label, double millimetres, double width, double height,
                        const std::string& elements);

/// Whether `text` begins as such figures do.
bool is_figure_svg(std::string_view text);

}  // namespace bamtrain
