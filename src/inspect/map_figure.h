#pragma once
// Matrices as figures of a page: an image whose colours the page's script reads back as numbers.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

/// Colour scales. weights: from transparent to full at the largest value, by the square root, so
/// that small weights show. signs: linear, from blue below zero to orange above.
enum class MapColours { weights, signs };

struct MapFigure {
  std::string title;  // "head 3"
  std::string note;   // after the title; may be empty
  int64_t rows = 0, columns = 0;
  std::vector<float> values;  // (rows, columns); NaN: not visible
  MapColours colours = MapColours::weights;
  double most = 1;  // (absolute) value of full colour; larger ones are clamped
  std::string unit = "weight";
  std::string row_names = {};  // "0 3 5": rows are layers, columns heads; empty: tokens, or blocks
  bool named = false;          // with the tokens' names on its axes: each row is one of few tokens
  double shared = 0;           // full colour of the page's other scale (colour_bar.h); 0: `most`
  std::string bar = {};        // HTML below the image, such as a colour bar of its own
};

/// The largest finite absolute value; 0 if there is none.
double largest_size(const std::vector<float>& values);

/// Averages fields, which are means of `seen` pairs, over blocks of `by` rows and columns; NaN if a
/// block has no pair.
std::vector<float> averaged(const std::vector<float>& values, const std::vector<float>& seen,
                            int64_t side, int64_t by);

/// <figure class="map">. REQUIRES: rows and columns from 1 to 512.
std::string map_figure(const MapFigure& map);

/// Approximate bytes of such a figure.
inline int64_t map_figure_bytes(int64_t rows, int64_t columns) {
  return (rows * (columns + 1) * 4) / 3 + 2048;
}

/// Style and script of a page with such figures, and what they share, to be placed after them.
/// `tokens`: display names of the prompt's tokens.
std::string map_page_parts(const std::vector<std::string>& tokens);

/// A PNG with indexed colours. REQUIRES: as map_figure; pixels (height, width).
std::string indexed_png(int64_t width, int64_t height, const std::vector<uint8_t>& pixels,
                        const std::vector<uint32_t>& rgba);

/// Base 64 (RFC 4648), padded.
std::string base64(const std::string& bytes);

}  // namespace bamtrain
