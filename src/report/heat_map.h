#pragma once
// A map of scores by needle depth and text length, for a terminal and as a figure.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct HeatMap {
  std::string title;             // the task's title
  std::string value;             // name of the score: "exact match"
  std::vector<int64_t> lengths;  // columns
  std::vector<double> depths;    // rows, from 0 to 1
  std::vector<double> shares;    // (depths, lengths), from 0 to 1

  double at(size_t depth, size_t length) const { return shares[depth * lengths.size() + length]; }
  /// Mean over all lengths.
  double mean(size_t depth) const;
};

/// Percentages, in lines of at most 80 columns; several lengths are followed by their mean. Lengths
/// that do not fit continue in blocks below. REQUIRES: at least one depth and one length.
std::string terminal_heat_map(const HeatMap& map);

/// An <svg> element of a page (page.h), without the title; darker fields are higher. REQUIRES: as
/// below.
std::string heat_map_element(const HeatMap& map);

/// An SVG file `millimetres` wide, as figure_svg() (figure.h): maps one below another; darker
/// fields are higher, with percentages where they fit. REQUIRES: at least one map, none empty; the
/// width within the limits there.
std::string heat_map_svg(const std::vector<HeatMap>& maps, double millimetres);

}  // namespace bamtrain
