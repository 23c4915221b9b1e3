#pragma once
// What Python's json module writes that is no JSON (RFC 8259), and what takes its place.

#include <cstddef>
#include <cstdint>
#include <string>

namespace bamtrain {

/// NaN, Infinity and -Infinity outside of strings become numbers, with spaces behind them: all else
/// stays in its place. Texts that are no JSON stay as bad as they are.
void replace_non_finite(std::string* json);

/// Position of the first escape of a UTF-16 surrogate without its other half ("\ud83d"), or npos.
size_t first_lone_surrogate(const std::string& json);

/// Each of those becomes the escape of U+FFFD. Returns how many bytes the replaced escapes have.
int64_t replace_lone_surrogates(std::string* json);

}  // namespace bamtrain
