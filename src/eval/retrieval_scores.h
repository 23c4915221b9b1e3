#pragma once
// Scores of retrieval prompts: means at a length, by depth, and at a depth over all lengths.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/checked.h"

namespace bamtrain {

/// Memory of `texts` texts of up to `longest` ids: all prompts of a length are drawn at once.
inline int64_t texts_bytes(int64_t texts, int64_t longest) {
  return checked_mul(texts, longest * static_cast<int64_t>(sizeof(int32_t)), "samples");
}

/// A score from 0 to 1 of each prompt, ordered by depth.
struct PromptScores {
  std::string name;
  std::vector<double> of_prompts;
};

/// The i-th of `depths` equally spaced depths: i / (depths - 1). REQUIRES: 0 <= i < depths, depths
/// >= 2.
double depth_of(int64_t i, int64_t depths);

/// Summary of the prompts at one length. Each score has its mean, NAME, and standard error over
/// prompts, NAME_error (null for one prompt). "prompts" is their number. With depths, "cells" has
/// {"depth", NAME...} with the means at each depth. REQUIRES: equally many prompts of every score
/// and at every depth; 0 depths: no cells.
nlohmann::ordered_json retrieval_row(const std::vector<PromptScores>& scores, int64_t depths);

/// Whether `row`, possibly from another program's file, is a retrieval_row() of scores with these
/// names.
bool is_retrieval_row(const nlohmann::ordered_json& row, const std::vector<std::string>& names,
                      int64_t depths);

/// Averages the rows' cells at each depth, as cells: every length has equal weight. REQUIRES: at
/// least one row of retrieval_row(), all with the same depths and names.
nlohmann::ordered_json depth_means(const std::vector<nlohmann::ordered_json>& rows,
                                   const std::vector<std::string>& names);

}  // namespace bamtrain
