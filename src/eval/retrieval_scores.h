#pragma once
// Scores of prompts that ask for what stands at some depth of a text: their means at a length, by
// depth, and at a depth over all lengths.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/checked.h"

namespace bamtrain {

/// Memory of so many texts of up to `longest` ids: all prompts of a length are drawn at once.
inline int64_t texts_bytes(int64_t texts, int64_t longest) {
  return checked_mul(texts, longest * static_cast<int64_t>(sizeof(int32_t)), "samples");
}

/// A share, from 0 to 1, of each prompt, those of one depth after those of the depth before.
struct PromptScores {
  std::string name;
  std::vector<double> of_prompts;
};

/// Of `depths` equally spaced ones the i-th: i / (depths - 1). REQUIRES: 0 <= i < depths >= 2.
double depth_of(int64_t i, int64_t depths);

/// Of the prompts at one length: for each of the scores NAME its mean, and NAME_error, the standard
/// error of sampling the prompts, null of one; "prompts", how many they are; where they have
/// depths "cells", for each depth {"depth", NAME...} with the means there.
/// REQUIRES: as many prompts of every score, and at every depth; no depths: 0.
nlohmann::ordered_json retrieval_row(const std::vector<PromptScores>& scores, int64_t depths);

/// Whether `row` holds what retrieval_row() gives of scores of these names: of a file that others
/// may have written.
bool is_retrieval_row(const nlohmann::ordered_json& row, const std::vector<std::string>& names,
                      int64_t depths);

/// Means of the cells of these rows at each depth, as cells: every length counts alike.
/// REQUIRES: rows of retrieval_row(), one at least, all of the same depths and names.
nlohmann::ordered_json depth_means(const std::vector<nlohmann::ordered_json>& rows,
                                   const std::vector<std::string>& names);

}  // namespace bamtrain
