#pragma once
// Replaces what Python's json module writes although it is not JSON (RFC 8259).

#include <cstddef>
#include <cstdint>
#include <string>

namespace bamtrain {

/// Replaces NaN, Infinity and -Infinity outside of strings by numbers, padded with spaces, so that
/// nothing else moves. Invalid JSON stays invalid.
void replace_non_finite(std::string* json);

/// Position of the first escape of an unpaired UTF-16 surrogate ("\ud83d"), or npos.
size_t first_lone_surrogate(const std::string& json);

/// Replaces each of those by the escape of U+FFFD. Returns the total bytes of the replaced escapes.
int64_t replace_lone_surrogates(std::string* json);

}  // namespace bamtrain
