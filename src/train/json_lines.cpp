#include "train/json_lines.h"

#include <fstream>

namespace bamtrain {

/// A line that is no JSON (a process died while writing it) ends the good part.
JsonLines::Kept JsonLines::good_part(const std::string& path, int64_t step) {
  std::ifstream in(path, std::ios::binary);
  Kept good;
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: an unfinished line
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
    if (json["step"].get<int64_t>() > step) break;
    good.bytes += static_cast<int64_t>(line.size()) + 1;
    good.last = std::move(json);
  }
  return good;
}

JsonLines::JsonLines(const std::string& path, int64_t step)
    : kept_(good_part(path, step)), file_(path, kept_.bytes) {}

void JsonLines::write(const nlohmann::ordered_json& line) { file_.write(line.dump() + "\n"); }

}  // namespace bamtrain
