#pragma once
// Checked access to members of JSON objects that programs wrote.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// A place in a file, and the remedy if it is damaged.
struct JsonPlace {
  std::string text;  // "metrics.jsonl:3"
  ExitCode code;
  std::string remedy;

  JsonPlace operator/(const std::string& part) const { return {text + ": " + part, code, remedy}; }
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;
};

/// The numbers of a list. Throws Error at `where` for anything else.
std::vector<double> json_numbers(const nlohmann::json& list, const JsonPlace& where);

/// An object whose members are read by type. A missing member, or one of another type, throws Error
/// at "PLACE: KEY". The value must outlive this object.
class JsonObject {
 public:
  /// Throws Error if `value` is not an object.
  JsonObject(const nlohmann::json& value, JsonPlace where);

  bool has(const char* key) const;
  double number(const char* key) const;
  /// NaN if the member is missing.
  double number_or_none(const char* key) const;
  /// An integer from 0 to `most`.
  int64_t count(const char* key, int64_t most = INT64_MAX) const;
  std::string text(const char* key) const;
  const nlohmann::json& list(const char* key) const;
  JsonObject object(const char* key) const;

  const nlohmann::json& value() const { return value_; }
  const JsonPlace& where() const { return where_; }

 private:
  const nlohmann::json& member(const char* key, bool (nlohmann::json::*holds)() const noexcept,
                               const char* type) const;

  const nlohmann::json& value_;
  JsonPlace where_;
};

}  // namespace bamtrain
