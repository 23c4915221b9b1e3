#pragma once
// Names along the axes of maps. All maps of a prompt share one drawing of its tokens.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

/// More names would be too small to read.
inline constexpr int64_t kMostAxisNames = 64;

/// The name as drawn: without white space around it, at most 8 columns, then "…". A token of white
/// space alone becomes a symbol.
std::string axis_name(const std::string& token);

/// The drawing of the tokens that map_with_axes() refers to, once on a page; "" for more than
/// kMostAxisNames tokens.
std::string token_axes(const std::vector<std::string>& tokens);

/// `picture`, an element of `side` rows and columns, with the names of token_axes() on both axes.
std::string with_token_axes(const std::string& picture, int64_t side);

/// `picture` with these names on the left and at the top.
std::string with_axes(const std::string& picture, const std::vector<std::string>& rows,
                      const std::vector<std::string>& columns);

/// Style of these maps on a page whose prompt has `tokens` tokens.
std::string axes_style(int64_t tokens);

}  // namespace bamtrain
