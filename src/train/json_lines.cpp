#include "train/json_lines.h"

#include <fstream>

namespace bamtrain {

namespace {

/// How many bytes of the file are whole lines of steps up to `step`. A line that is no JSON (a
/// process died while writing it) ends the good part.
int64_t good_bytes(const std::string& path, int64_t step) {
  std::ifstream in(path, std::ios::binary);
  int64_t good = 0;
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: an unfinished line
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
    if (json["step"].get<int64_t>() > step) break;
    good += static_cast<int64_t>(line.size()) + 1;
  }
  return good;
}

}  // namespace

JsonLines::JsonLines(const std::string& path, int64_t step) : file_(path, good_bytes(path, step)) {}

void JsonLines::write(const nlohmann::ordered_json& line) { file_.write(line.dump() + "\n"); }

}  // namespace bamtrain
