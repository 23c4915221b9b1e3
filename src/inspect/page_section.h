#pragma once
// Shared parts of the sections of an inspection's page, and the sections in files of their own.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/inspection.h"
#include "report/chart.h"

namespace bamtrain {

std::string paragraph(const std::string& text);

/// The values of head h of (H, size).
template <class T>
std::vector<T> of_head(const std::vector<T>& all, int64_t h, int64_t size) {
  return {all.begin() + h * size, all.begin() + (h + 1) * size};
}

/// A layer's part of a section, folded unless it is the first. `note`: after the layer's number.
std::string folded(const LayerView& view, bool first, const std::string& note,
                   const std::string& contents);

/// A chart without lines yet, for lines of heads or of layers.
Chart head_chart(const std::string& title, const std::string& x_title);
/// Legends of the lines' colours, for layers and for heads.
std::string layer_legend(const Inspection& found);
std::string head_legend(int64_t H);

/// Maps of every head's weights, and of its biases; "" without biases.
std::string weight_section(const Inspection& found);
std::string bias_section(const Inspection& found);
/// Scales and gates: distributions, maps of their means, scales against visible keys with fits.
std::string scale_section(const Inspection& found);

}  // namespace bamtrain
