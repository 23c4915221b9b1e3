#include "core/json_object.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/abbreviate.h"
#include "core/faults.h"

namespace bamtrain {

using nlohmann::json;

void JsonPlace::refuse(const std::string& expected, const std::string& found) const {
  throw Error(code, text, expected, abbreviate(found), remedy);
}

std::vector<double> json_numbers(const json& list, const JsonPlace& where) {
  std::vector<double> out;
  bool all = list.is_array();
  for (auto v = list.begin(); all && v != list.end(); ++v) {
    all = v->is_number();
    if (all) out.push_back(*v);
  }
  if (!all) where.refuse("a list of numbers", list.dump());
  return out;
}

JsonObject::JsonObject(const json& value, JsonPlace where)
    : value_(value), where_(std::move(where)) {
  if (!value_.is_object()) where_.refuse("a JSON object", value_.dump());
}

const json& JsonObject::member(const char* key, bool (json::*holds)() const noexcept,
                               const char* type) const {
  const auto it = value_.find(key);
  const JsonPlace place = where_ / key;
  if (it == value_.end()) throw missing(place.code, place.text, type, place.remedy);
  if (!((*it).*holds)()) place.refuse(type, it->dump());
  return *it;
}

bool JsonObject::has(const char* key) const { return value_.contains(key); }

double JsonObject::number(const char* key) const {
  return member(key, &json::is_number, "a number");
}

double JsonObject::number_or_none(const char* key) const { return has(key) ? number(key) : NAN; }

int64_t JsonObject::count(const char* key, int64_t most) const {
  const json& n = member(key, &json::is_number_unsigned, "an integer, 0 or more");
  if (n.get<uint64_t>() > static_cast<uint64_t>(most)) {
    (where_ / key).refuse("an integer from 0 to " + std::to_string(most), n.dump());
  }
  return n;
}

std::string JsonObject::text(const char* key) const {
  return member(key, &json::is_string, "a string");
}

const json& JsonObject::list(const char* key) const {
  return member(key, &json::is_array, "a list");
}

JsonObject JsonObject::object(const char* key) const {
  return {member(key, &json::is_object, "an object"), where_ / key};
}

}  // namespace bamtrain
