#include "prompts/request_file.h"

#include "prompts/python_text.h"
#include "prompts/record_file.h"

namespace bamtrain {

RequestFile read_request_file(const std::string& path, int64_t most) {
  RequestFile file;
  file.sha256 = read_records(path, most, [&](const JsonObject& record, int64_t line) {
    const bool within = record.has("request") && !record.has("context");
    const JsonObject request = within ? record.object("request") : record;
    file.requests.push_back({request.text("context"), request.text("continuation"), line});
    if (file.requests.back().continuation.empty()) {
      (request.where() / "continuation").refuse("some text", "an empty text");
    }
  });
  return file;
}

RequestFile read_cloze_file(const std::string& path, int64_t most) {
  RequestFile file;
  file.sha256 = read_records(path, most, [&](const JsonObject& record, int64_t line) {
    const std::string text = record.text("text");
    const size_t space = text.rfind(' ');
    const bool alone = space == std::string::npos;
    const std::string word = alone ? text : text.substr(space + 1);
    if (without_space_around(word).empty()) {
      (record.where() / "text").refuse("a word after the last space", "\"" + text + "\"");
    }
    file.requests.push_back({alone ? "" : text.substr(0, space), " " + word, line});
  });
  return file;
}

}  // namespace bamtrain
