#pragma once
// JSON files that vouch for themselves: results.json, perplexity.json, what bamtrain eval writes.
//
//   {
//     "format": 2,
//     ...
//     "digest": "<64 hex digits>"
//   }
//
// digest is the SHA-256 of all other members as JSON without white space, in their order. A file of
// format 1, or without a format, is one of an earlier program and has none.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/json.h"

namespace bamtrain {

inline constexpr int kDigestedFormat = 2;

/// The text of such a file: `object` with its format, in its place or else at the end, and digest.
std::string digested_json(nlohmann::ordered_json object);

/// The object in such a text, its members in their order, without its format and digest. Error
/// (source.code) as parse_json; for a digest that does not hold or is missing, and for a newer
/// format.
nlohmann::ordered_json parse_digested_json(std::string_view text, const JsonSource& source);

}  // namespace bamtrain
