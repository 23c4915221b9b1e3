#pragma once
// The user documentation of a run configuration's keys, generated from its schema.

#include <string>

namespace bamtrain {

/// Markdown, 100 columns: every key with its type, limits, default and description, by section; the
/// mechanisms with their options. docs/config.md contains this text.
std::string config_reference();

}  // namespace bamtrain
