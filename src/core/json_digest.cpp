#include "core/json_digest.h"

#include <nlohmann/json.hpp>

#include "core/json_object.h"
#include "core/sha256.h"

namespace bamtrain {

using nlohmann::json;
using nlohmann::ordered_json;

std::string digested_json(ordered_json object) {
  object["format"] = kDigestedFormat;
  object.erase("digest");
  object["digest"] = sha256_hex(object.dump());
  return object.dump(2) + "\n";
}

ordered_json parse_digested_json(std::string_view text, const JsonSource& source) {
  const json strict = parse_json(text, source);
  const JsonObject read(strict, {source.where, source.code, source.remedy});
  const int64_t format = read.has("format") ? read.count("format") : 1;
  if (format > kDigestedFormat) {
    JsonPlace newer = read.where() / "format";
    newer.remedy = "read it with a newer bamtrain";
    newer.refuse("at most " + std::to_string(kDigestedFormat), std::to_string(format));
  }
  // Parsed again in the order of the file, which parse_json does not keep.
  ordered_json object = ordered_json::parse(text);
  if (format == kDigestedFormat || read.has("digest")) {
    const std::string said = read.text("digest");
    object.erase("digest");
    const std::string found = sha256_hex(object.dump());
    if (said != found) {
      throw Error::fault(source.code, source.where + ": digest",
                         "mismatch: recorded " + said + ", computed " + found, source.remedy);
    }
  } else if (format == 0) {
    (read.where() / "format").refuse("1 or " + std::to_string(kDigestedFormat), "0");
  }
  object.erase("format");
  return object;
}

}  // namespace bamtrain
