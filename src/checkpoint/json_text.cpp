#include "checkpoint/json_text.h"

#include <set>
#include <vector>

#include "core/error.h"

namespace bamtrain {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxMessage = 300;  // the library quotes the last token, however long it is

[[noreturn]] void refuse(const std::string& where, const std::string& expected,
                         const std::string& found) {
  throw Error(ExitCode::checkpoint, where, expected, found.substr(0, kMaxMessage),
              "the file is damaged or was not written by bamtrain; use another one");
}

}  // namespace

nlohmann::json parse_json_text(std::string_view text, const std::string& where) {
  using Event = nlohmann::json::parse_event_t;
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    refuse(where, "JSON text", "a zero byte at offset " + std::to_string(zero));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") refuse(where, "JSON text", "a byte order mark");

  std::vector<std::set<std::string>> keys;  // of the objects being read, outermost first
  const auto check = [&](int depth, Event event, nlohmann::json& value) {
    if (depth > kMaxDepth) {
      refuse(where, "JSON nested at most " + std::to_string(kMaxDepth) + " deep", "more");
    }
    if (event == Event::object_start) {
      keys.emplace_back();
    } else if (event == Event::object_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        refuse(where, "every key once", "\"" + key + "\" twice");
      }
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::exception& e) {
    refuse(where, "one JSON value in UTF-8", e.what());
  }
}

}  // namespace bamtrain
