// Maps of attention to the prompt, by layer and head.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "inspect/colour_bar.h"
#include "inspect/map_axes.h"
#include "inspect/map_figure.h"
#include "inspect/page.h"
#include "inspect/page_section.h"
#include "report/axis.h"
#include "report/section.h"

namespace bamtrain {

namespace {

constexpr double kLowestBias = -20;  // exp(-20) is invisible
constexpr int64_t kLeastMapSide = 64;

/// Number of map blocks that the page merges into one, to keep all maps within kMostMapBytes.
int64_t page_block(const Inspection& found) {
  int64_t maps = 0, side = 0;
  for (const LayerView& view : found.layers) {
    maps += view.H * (view.has_bias() ? 2 : 1);
    side = view.map.side;
  }
  int64_t by = 1;
  const auto bytes = [&](int64_t block) {
    const int64_t fewer = (side + block - 1) / block;
    return maps * map_figure_bytes(fewer, fewer);
  };
  while (bytes(by) > kMostMapBytes && side / by > kLeastMapSide) ++by;
  return by;
}

/// Maps of one kind: what they show, and in which blocks.
struct MapKind {
  std::vector<float> AttentionValues::*member;
  MapColours colours;
  const char* unit;
  int64_t by;

  std::vector<float> values(const LayerView& view, int64_t h) const {
    const int64_t side = view.map.side;
    return averaged(of_head(view.maps.*member, h, side * side), view.seen, side, by);
  }
  /// Full colour of the layer's maps.
  double most(const LayerView& view) const {
    double most = 0;
    for (int64_t h = 0; h < view.H; ++h) most = std::max(most, largest_size(values(view, h)));
    return colours == MapColours::signs ? std::min(most, -kLowestBias) : most;
  }
};

/// The smallest of the finite values, as text.
std::string least_text(const std::vector<float>& values) {
  float least = INFINITY;
  for (const float x : values) {
    if (std::isfinite(x)) least = std::min(least, x);
  }
  return number_text(least, 3);
}

std::string maps_of(const LayerView& view, const MapKind& kind, double shared) {
  const int64_t side = view.map.side, fewer = (side + kind.by - 1) / kind.by;
  const double most = kind.most(view);
  std::string out = colour_bar(kind.colours, most, shared) + "<div class=\"maps\">\n";
  for (int64_t h = 0; h < view.H; ++h) {
    MapFigure map;
    map.title = fmt::format("head {}", h);
    map.rows = map.columns = fewer;
    map.values = kind.values(view, h);
    map.colours = kind.colours;
    map.unit = kind.unit;
    map.most = most;
    map.shared = shared;
    map.named = view.map.block * kind.by == 1 && side <= kMostAxisNames;
    if (kind.colours == MapColours::signs) {
      map.note = "from " + least_text(map.values);
    } else {
      const HeadSummary s = summary_of(view, h);
      map.note = fmt::format("entropy {}, {} keys", number_text(s.entropy, 3),
                             number_text(s.nonzero_keys, 3));
    }
    out += map_figure(map);
  }
  return out + "</div>\n";
}

/// The maps of all layers that have such values, on one colour scale. If the layers' own scales
/// differ, a switch shows these.
std::string layers_of(const Inspection& found, const MapKind& kind,
                      const std::function<std::string(const LayerView&)>& note) {
  double least = INFINITY, shared = 0;
  for (const LayerView& view : found.layers) {
    if ((view.maps.*kind.member).empty()) continue;
    const double most = kind.most(view);
    least = std::min(least, most);
    shared = std::max(shared, most);
  }
  std::string out;
  for (const LayerView& view : found.layers) {
    if ((view.maps.*kind.member).empty()) continue;
    out += folded(view, out.empty(), note(view), maps_of(view, kind, shared));
  }
  if (out.empty()) return "";
  return "<div class=\"layers\">\n" +
         (least < shared ? colour_switch(std::string("own-") + kind.unit) : "") + out + "</div>\n";
}

/// "1.2 to 3.4", or one number if they are equal.
std::string range_text(const LayerView& view, double HeadSummary::*member) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t h = 0; h < view.H; ++h) {
    const double x = summary_of(view, h).*member;
    low = std::fmin(low, x);
    high = std::fmax(high, x);
  }
  const std::string first = number_text(low, 3), last = number_text(high, 3);
  return first == last ? first : first + " to " + last;
}

}  // namespace

std::string weight_section(const Inspection& found) {
  const int64_t by = page_block(found);
  const int64_t block = found.layers[0].map.block * by;
  const std::string cells =
      block == 1 ? "A cell is a pair of query and key"
                 : fmt::format(
                       "A cell is the mean over {} queries and {} keys, of the pairs that "
                       "see each other",
                       block, block);
  const MapKind kind = {&AttentionValues::weights, MapColours::weights, "weight", by};
  return section(
      "Weights",
      paragraph("Queries from top to bottom, keys from left to right. " + cells +
                ". Colour goes by the square root of the weight; grey pairs do not see each other. "
                "The pointer, or the arrow keys, read a cell; a click enlarges a map.") +
          layers_of(found, kind, [](const LayerView& view) {
            return "entropy " + range_text(view, &HeadSummary::entropy) + " nats, " +
                   range_text(view, &HeadSummary::nonzero_keys) + " keys";
          }));
}

std::string bias_section(const Inspection& found) {
  const MapKind kind = {&AttentionValues::bias, MapColours::signs, "bias", page_block(found)};
  const std::string layers = layers_of(
      found, kind, [](const LayerView& view) { return "from " + least_text(view.maps.bias); });
  if (layers.empty()) return "";
  return section("Biases of this prompt",
                 paragraph("What is added to each score; with a mix of heads, its output. Blue is "
                           "below zero, orange above. Full colour is at most 20. Grey pairs do not "
                           "see each other.") +
                     layers);
}

}  // namespace bamtrain
