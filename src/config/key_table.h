#pragma once
// Helpers for the tables of keys (keys_*.cpp): a key with its description, its allowed values and
// the member of RunConfig that stores it.

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/keys.h"
#include "config/mechanism.h"
#include "config/value_schema.h"
#include "core/json.h"

namespace bamtrain {

/// The keys of some sections each, in the order of documentation and output.
std::vector<Key> model_keys();       // model
std::vector<Key> data_keys();        // init_from, data
std::vector<Key> training_keys();    // optimizer, schedule, train, checkpoint
std::vector<Key> evaluation_keys();  // eval, sample, log

namespace key_table {

using nlohmann::json;
using nlohmann::ordered_json;

// Limits far beyond any use, like kMaxSteps: a larger number is a typo.
inline constexpr int64_t kMaxTokens = int64_t{1} << 40;
inline constexpr int64_t kMaxLength = int64_t{1} << 24;
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;
// Epsilons that keep divisors away from zero are added in fp32, where smaller numbers lose digits
// or become zero.
inline constexpr double kMinEps = std::numeric_limits<float>::min();
inline constexpr double kMaxEps = std::numeric_limits<float>::max();
inline constexpr int64_t kMaxInt32 = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

template <class T>
struct JsonValue {
  static ordered_json write(const T& v) { return v; }
  static T read(const json& v) { return v.get<T>(); }
};

template <class T>
struct JsonValue<std::optional<T>> {
  static ordered_json write(const std::optional<T>& v) {
    return v ? ordered_json(*v) : ordered_json(nullptr);
  }
  static std::optional<T> read(const json& v) {
    return v.is_null() ? std::optional<T>() : v.get<T>();
  }
};

/// A key stored in the member that `field` selects.
template <class Field>
Key key(const std::string& path, const std::string& description, const ValueSchema& schema,
        Field field) {
  using T = std::decay_t<decltype(field(std::declval<RunConfig&>()))>;
  Key k{path, description, schema};
  k.get = [field](const RunConfig& c) { return JsonValue<T>::write(field(c)); };
  k.set = [field, path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    field(c) = JsonValue<T>::read(v);
  };
  return k;
}

/// A key whose allowed names map to the enumerators of a member.
template <class Enum, class Field>
Key choice(const std::string& path, const std::string& description,
           const std::vector<std::pair<std::string, Enum>>& names, Field field) {
  std::vector<std::string> words;
  for (const auto& [word, unused] : names) words.push_back(word);
  const ValueSchema schema = one_of(words);
  Key k{path, description, schema};
  k.get = [field, names](const RunConfig& c) -> ordered_json {
    for (const auto& [word, value] : names) {
      if (value == field(c)) return word;
    }
    return nullptr;  // an enumerator that configurations do not offer
  };
  k.set = [field, names, path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    for (const auto& [word, value] : names) {
      if (v == word) field(c) = value;
    }
  };
  return k;
}

/// A key whose value names an entry of `registry`. REQUIRES: the registry outlives the key.
template <class Info, class Field>
Key mechanism(const std::string& path, const std::string& description,
              const std::vector<Info>& registry, Field field) {
  Key k{path, description, mechanism_schema(mechanisms_of(registry)), true};
  k.get = [field](const RunConfig& c) { return mechanism_json(field(c)); };
  k.set = [field, path, &registry](RunConfig& c, const json& v, const Origin& origin) {
    field(c) = read_mechanism(v, registry, path, origin, c.config_version);
  };
  return k;
}

inline Key required(Key k) {
  k.required = true;
  return k;
}

inline Key needed(bool (*of)(const json& document), Key k) {
  k.needed = of;
  return k;
}

/// Marks a key that a resumed run may change.
inline Key resumable(Key k) {
  k.free_on_resume = true;
  return k;
}

/// Whether a document trains on shards, so that it must specify what a task would.
bool trains_on_shards(const json& document);

}  // namespace key_table

// Selects a member of RunConfig, const or not.
#define FIELD(member) \
  [](auto& c) -> auto& { return c.member; }

}  // namespace bamtrain
