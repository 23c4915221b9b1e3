#pragma once
// Small example configurations for the config reference.

#include <string>

namespace bamtrain {

/// A complete run configuration with few keys.
std::string minimal_config();

/// Members of a run configuration, without the braces around them, that show the keys of the group
/// at `path` ("": the top level). They are valid inside the minimal configuration. REQUIRES: `path`
/// is a group.
std::string config_example(const std::string& path);

}  // namespace bamtrain
