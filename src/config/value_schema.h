#pragma once
// The JSON Schema (draft 2020-12) of one value. The same fragment is printed by --print-schema and
// checked here when a configuration is read, so the two cannot disagree. Keywords in use: type,
// enum, minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, items, minItems, maxItems,
// uniqueItems, additionalProperties (as a schema of the values); to be described, and checked by
// their own readers, oneOf and properties.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bamtrain {

using ValueSchema = nlohmann::ordered_json;

ValueSchema boolean_value();
ValueSchema integer_value(int64_t minimum, int64_t maximum);  // both inclusive
ValueSchema number_from(double minimum);
ValueSchema number_above(double minimum);
ValueSchema number_within(double minimum, double maximum);    // both inclusive
ValueSchema number_in_range(double minimum, double maximum);  // minimum inclusive, maximum not
ValueSchema number_up_to(double minimum, double maximum);     // maximum inclusive, minimum not
ValueSchema any_text();
ValueSchema nonempty_text();
ValueSchema one_of(const std::vector<std::string>& names);
ValueSchema list_of(const ValueSchema& item);
ValueSchema set_of(const ValueSchema& item);                // elements differ
ValueSchema tuple_of(const ValueSchema& item, int length);  // of exactly that many elements
ValueSchema map_of(const ValueSchema& value);               // an object with any keys
ValueSchema or_null(ValueSchema schema);

/// What the schema allows, as a phrase: "an integer from 1 to 8".
std::string describe(const ValueSchema& schema);

/// Whether the value is an integer, which may be written with an exponent or a zero fraction as
/// long as a double holds it exactly: 1, 1.0 and 1e0 are.
bool is_whole(const nlohmann::json& value);

/// What the value is, as a phrase: "the string \"abc\"".
std::string describe_value(const nlohmann::json& value);

/// What to do about a string whose text is a value that `s` takes, as JSON or as C writes a number
/// (.5, 01, +1); "" for any other.
std::string remedy_for_text(const std::string& text, const ValueSchema& s);

/// Error (ExitCode::config) naming `where` unless the value satisfies the schema, in which an
/// integer is what is_whole. Strings with a NUL character are refused: file names end there.
void check_value(const nlohmann::json& value, const ValueSchema& schema, const std::string& where);

}  // namespace bamtrain
