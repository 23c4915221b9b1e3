#pragma once
// JSON files with their own checksum: results.json, perplexity.json, the output of bamtrain eval.
//
//   {
//     "format": 2,
//     ...
//     "digest": "<64 hex digits>"
//   }
//
// digest is the SHA-256 of all other members, in order, as JSON without white space. Files of
// format 1 or without a format come from an earlier version of the program and have no digest.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/json.h"

namespace bamtrain {

inline constexpr int kDigestedFormat = 2;

/// The text of such a file: `object` with its format (in its place, else at the end) and digest.
std::string digested_json(nlohmann::ordered_json object);

/// The object in such a text, members in order, without its format and digest. Throws Error
/// (source.code) as parse_json, if the digest is wrong or missing, and for a newer format.
nlohmann::ordered_json parse_digested_json(std::string_view text, const JsonSource& source);

}  // namespace bamtrain
