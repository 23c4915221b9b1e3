#include "config/key_words.h"

#include "config/keys.h"
#include "config/reference.h"

namespace bamtrain {

namespace {

std::vector<std::string> words_of(const Key& key) {
  if (key.schema.value("type", ValueSchema()) == "boolean") return {"true", "false"};
  std::vector<std::string> out;
  if (key.names_mechanism) {
    const std::string kind = key.path.substr(key.path.rfind('.') + 1);
    for (const auto& [of, names] : mechanisms_by_kind()) {
      if (of != kind && !(kind == "prior" && of == "mix")) continue;
      out.insert(out.end(), names.begin(), names.end());
    }
  } else if (key.schema.contains("enum")) {
    for (const auto& value : key.schema["enum"]) {
      out.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return out;
}

/// Whether a text, such as a file's name, is one of the values.
bool takes_text(const ValueSchema& schema) {
  for (const ValueSchema& one : schema.value("oneOf", ValueSchema::array())) {
    if (takes_text(one)) return true;
  }
  const ValueSchema type = schema.value("type", ValueSchema());
  return type == "string" || (type.is_array() && type.front() == "string");
}

}  // namespace

std::vector<KeyWords> key_words() {
  std::vector<KeyWords> out;
  for (const Key& key : all_keys()) {
    out.push_back({key.path, key.description, words_of(key)});
    out.back().any_text = out.back().words.empty() && takes_text(key.schema);
  }
  return out;
}

std::vector<KeyWords> section_words() {
  std::vector<KeyWords> out;
  for (const KeyGroup& group : all_groups()) out.push_back({group.path, group.description});
  return out;
}

}  // namespace bamtrain
