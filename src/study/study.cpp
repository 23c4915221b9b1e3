#include "study/study.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "config/value_schema.h"
#include "core/closest_match.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"
#include "core/join.h"
#include "core/json.h"
#include "core/unexpanded_path.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{16} << 20;
constexpr int64_t kStudyVersion = 1;

/// The members of an object of the file, each looked up by name. A name never looked up is unknown.
class Members {
 public:
  Members(const ordered_json& object, std::string where, std::string path)
      : object_(object), where_(std::move(where)), path_(std::move(path)) {}

  std::string at(const std::string& name) const { return where_ + ": " + path_ + name; }

  const ordered_json* find(const std::string& name) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  const ordered_json& need(const std::string& name, const ValueSchema& schema) {
    const ordered_json* const found = find(name);
    if (found == nullptr) {
      throw missing(ExitCode::config, at(name), describe(schema),
                    "add it; bamtrain help study shows an example");
    }
    check_value(json(*found), schema, at(name));
    return *found;
  }

  std::string text(const std::string& name) {
    return need(name, nonempty_text()).get<std::string>();
  }

  /// Throws Error for a member that was not looked up.
  void end() const {
    for (const auto& [name, unused] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      throw Error::fault(ExitCode::config, at(name), "unknown key",
                         did_you_mean(name, known_, "remove it, or use " + join(known_)));
    }
  }

 private:
  const ordered_json& object_;
  std::string where_, path_;
  std::vector<std::string> known_;
};

void require_object(const ordered_json& value, const std::string& where, const char* phrase) {
  if (value.is_object()) return;
  throw Error(ExitCode::config, where, phrase, describe_value(json(value)), "write {...}");
}

/// Throws Error for a key that the study sets itself.
void check_key(const std::string& key, const std::string& where) {
  if (key.empty() || key.ends_with('.') || key.find('=') != std::string::npos) {
    throw Error(ExitCode::config, where, "a config key", "\"" + key + "\"",
                "write the key and its value apart: \"KEY\": VALUE");
  }
  if (key != "out_dir" && key != "name") return;
  throw Error(ExitCode::config, where, "keys other than out_dir and name, which the study sets",
              "\"" + key + "\"", "remove it");
}

StudySettings settings_of(const ordered_json& object, const std::string& where) {
  require_object(object, where, "an object of config keys and their values");
  StudySettings settings;
  for (const auto& [key, value] : object.items()) {
    check_key(key, where);
    settings.emplace_back(key, json(value));
  }
  return settings;
}

/// Throws Error for a label that does not fit in one cell of a table.
void check_label(const std::string& label, const std::string& where) {
  const bool plain = std::none_of(label.begin(), label.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  if (plain && !label.empty()) return;
  throw Error(ExitCode::config, where, "a non-empty label of one line", json(label).dump(), "");
}

std::string label_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

AxisUse use_of(Members& axis) {
  const ordered_json* const found = axis.find("for");
  if (found == nullptr) return AxisUse::rows;
  check_value(json(*found), one_of({"rows", "choose", "repeat"}), axis.at("for"));
  return *found == "rows" ? AxisUse::rows : *found == "choose" ? AxisUse::choose : AxisUse::repeat;
}

StudyAxis axis_of(const ordered_json& value, const std::string& where, const std::string& path) {
  require_object(value, where + ": " + path, "an axis, {\"key\" or \"name\", \"values\", \"for\"}");
  Members members(value, where, path + ".");
  StudyAxis axis;
  std::string key;
  if (const ordered_json* const found = members.find("key")) {
    check_value(json(*found), nonempty_text(), members.at("key"));
    key = found->get<std::string>();
    check_key(key, members.at("key"));
    axis.name = key.substr(key.rfind('.') + 1);
  }
  if (const ordered_json* const found = members.find("name")) {
    check_value(json(*found), nonempty_text(), members.at("name"));
    axis.name = found->get<std::string>();
  }
  axis.use = use_of(members);
  const ordered_json* const values = members.find("values");
  members.end();
  const std::string at = members.at("values");
  if (axis.name.empty()) {
    throw missing(ExitCode::config, members.at("name"), "a name, or a key instead",
                  "name what the axis varies");
  }
  const bool named = values != nullptr && values->is_object();
  if (values == nullptr || values->empty() || !(named || (values->is_array() && !key.empty()))) {
    throw Error(ExitCode::config, at,
                key.empty() ? "an object of labels, each with its keys and their values"
                            : "a list of values of " + key + ", or an object of labels and values",
                values == nullptr ? "no values" : describe_value(json(*values)),
                "give at least one value");
  }
  std::set<std::string> labels;
  for (const auto& [label, v] : values->items()) {
    StudyAxis::Value one = {named ? std::string(label) : label_of(v), {}};
    const std::string entry = at + (named ? "." + label : "[" + label + "]");
    check_label(one.label, entry);
    if (key.empty()) {
      one.settings = settings_of(v, entry);
    } else {
      one.settings = {{key, json(v)}};
    }
    if (!labels.insert(one.label).second) {
      throw Error::fault(ExitCode::config, entry, "duplicate value \"" + one.label + "\"",
                         "remove it");
    }
    axis.values.push_back(std::move(one));
  }
  return axis;
}

std::vector<std::string> texts_of(const ordered_json& list) {
  return list.get<std::vector<std::string>>();
}

}  // namespace

Study read_study(const std::string& path) {
  const std::string text =
      InputFile(path, ExitCode::io, "name the file of a study").text(kMostBytes);
  static_cast<void>(parse_json(text, {path, ExitCode::config}));  // good errors for invalid JSON
  const ordered_json document = ordered_json::parse(text);        // in the file's order
  require_object(document, path, "a study, a JSON object");
  Members members(document, path, "");
  Study study;
  study.file = path;
  members.need("study_version", integer_value(1, kStudyVersion));
  study.name = members.text("name");
  check_label(study.name, members.at("name"));
  study.out_dir = members.text("out_dir");
  require_expanded_path(study.out_dir, ExitCode::config, members.at("out_dir"));
  study.config = members.text("config");
  if (!std::filesystem::path(study.config).is_absolute()) {
    study.config = (std::filesystem::path(path).parent_path() / study.config).string();
  }
  if (const ordered_json* const set = members.find("set")) {
    study.set = settings_of(*set, members.at("set"));
  }
  const ordered_json* const axes = members.find("axes");
  if (axes == nullptr || !axes->is_array() || axes->empty()) {
    throw Error(ExitCode::config, members.at("axes"), "a list of at least one axis",
                axes == nullptr ? "no axes" : describe_value(json(*axes)),
                "list the hyperparameters that the runs differ in");
  }
  std::set<std::string> names;
  for (size_t i = 0; i < axes->size(); ++i) {
    const std::string entry = "axes[" + std::to_string(i) + "]";
    study.axes.push_back(axis_of((*axes)[i], path, entry));
    if (names.insert(study.axes.back().name).second) continue;
    throw Error::fault(ExitCode::config, members.at(entry),
                       "duplicate name \"" + study.axes.back().name + "\"", "give it another name");
  }
  std::map<std::string, std::string> axis_of_key;
  for (const StudyAxis& axis : study.axes) {
    for (const StudyAxis::Value& value : axis.values) {
      for (const auto& [key, unused] : value.settings) {
        const std::string& first = axis_of_key.emplace(key, axis.name).first->second;
        if (first == axis.name) continue;
        throw Error(ExitCode::config, members.at("axes"), "axes that vary different keys",
                    key + " in \"" + first + "\" and in \"" + axis.name + "\"",
                    "remove it from one of them");
      }
    }
  }
  if (const ordered_json* const choose = members.find("choose")) {
    require_object(*choose, members.at("choose"), "an object with the keys metric and mode");
    Members of(*choose, path, "choose.");
    study.choose_metric = of.text("metric");
    study.choose_highest = of.need("mode", one_of({"min", "max"})) == "max";
    of.end();
  }
  study.measures = texts_of(members.need("measures", set_of(nonempty_text())));
  if (members.find("reference") != nullptr) study.reference = members.text("reference");
  if (const ordered_json* const folders = members.find("take_over")) {
    check_value(json(*folders), set_of(nonempty_text()), members.at("take_over"));
    study.take_over = texts_of(*folders);
  }
  members.end();
  if (study.measures.empty()) {
    throw Error::fault(ExitCode::config, members.at("measures"), "empty list",
                       "add a metric, such as \"validation/loss\"");
  }
  return study;
}

}  // namespace bamtrain
