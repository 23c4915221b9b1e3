#pragma once
// A map of shares by the depth of what is asked for and the length of the text that holds it, for a
// terminal and as a figure.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct HeatMap {
  std::string title;             // of the task
  std::string value;             // what the shares are of: "exact match"
  std::vector<int64_t> lengths;  // columns
  std::vector<double> depths;    // rows, from 0 to 1
  std::vector<double> shares;    // (depths, lengths), from 0 to 1

  double at(size_t depth, size_t length) const { return shares[depth * lengths.size() + length]; }
  /// Over all lengths.
  double mean(size_t depth) const;
};

/// Percents, in lines of at most 80 columns, behind those of several lengths their mean; what goes
/// beyond 80 stands below, in blocks. REQUIRES: a depth and a length at least.
std::string terminal_heat_map(const HeatMap& map);

/// An <svg> element of a page (page.h), without the title; the darker a field the higher its share.
/// REQUIRES: as below.
std::string heat_map_element(const HeatMap& map);

/// An SVG file `millimetres` wide, as figure_svg() (figure.h): maps one below the other, the darker
/// a field the higher its share, with the percents where they fit. REQUIRES: one at least, none
/// empty; the width within the limits there.
std::string heat_map_svg(const std::vector<HeatMap>& maps, double millimetres);

}  // namespace bamtrain
