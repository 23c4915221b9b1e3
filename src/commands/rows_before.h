#pragma once
// An evaluation that was interrupted goes on with what it has not written yet.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bamtrain {

/// "scores" of the result in the file at `path`, whatever they are, where all else there but what
/// comes of them, the keys `derived` ("scores" among them), is as in `result`. None of any other
/// file: it will be replaced.
std::vector<nlohmann::ordered_json> rows_before(const std::string& path,
                                                const nlohmann::ordered_json& result,
                                                const std::vector<std::string>& derived);

}  // namespace bamtrain
