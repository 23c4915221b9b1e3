#pragma once
// Small configurations that the config reference shows.

#include <string>

namespace bamtrain {

/// A whole run configuration of few keys.
std::string minimal_config();

/// Members of a run configuration, without the braces around them, that show the keys of the group
/// at `path`, "" being the top level. With the minimal configuration around them they are valid.
/// REQUIRES: `path` is a group.
std::string config_example(const std::string& path);

}  // namespace bamtrain
