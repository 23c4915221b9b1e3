#include "commands/rows_before.h"

#include <filesystem>

#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

}  // namespace

std::vector<ordered_json> rows_before(const std::string& path, const ordered_json& result,
                                      const std::vector<std::string>& derived) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return {};
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  try {
    const std::string text = InputFile(path, ExitCode::io, "").text(kMostBytes);
    json before = parse_json(text, {path, ExitCode::io});
    if (!before.is_object() || !before.contains("scores")) return {};
    for (const std::string& key : derived) before.erase(key);
    if (before != json::parse(result.dump())) return {};
    // In the order of the file, which the first reader does not keep.
    const ordered_json file = ordered_json::parse(text);
    return std::vector<ordered_json>(file["scores"].begin(), file["scores"].end());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace bamtrain
