#pragma once
// What a user reads about the keys of a run configuration, out of its schema.

#include <string>

namespace bamtrain {

/// Markdown, 100 columns: every key with its type, limits, default and description, by section; the
/// mechanisms with their options. docs/config.md holds this text.
std::string config_reference();

}  // namespace bamtrain
