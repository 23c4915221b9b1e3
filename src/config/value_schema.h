#pragma once
// The JSON Schema (draft 2020-12) of one value. --print-schema prints the same fragment that the
// reader checks, so the two cannot disagree. Checked keywords: type, enum, minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, minLength, items, minItems, maxItems, uniqueItems,
// additionalProperties (as a schema of the values). oneOf and properties are only descriptive;
// their own readers check them.

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
ValueSchema set_of(const ValueSchema& item);                // distinct elements
ValueSchema tuple_of(const ValueSchema& item, int length);  // exactly `length` elements
ValueSchema map_of(const ValueSchema& value);               // an object with any keys
ValueSchema or_null(ValueSchema schema);

/// What the schema allows, as a phrase: "an integer from 1 to 8".
std::string describe(const ValueSchema& schema);

/// Whether the value is an integer. An exponent or a zero fraction is allowed as long as a double
/// represents it exactly: 1, 1.0 and 1e0 are integers.
bool is_whole(const nlohmann::json& value);

/// What the value is, as a phrase: "the string \"abc\"".
std::string describe_value(const nlohmann::json& value);

/// The remedy for a string whose text is a value that `s` accepts, in JSON or C notation (.5, 01,
/// +1); "" for any other string.
std::string remedy_for_text(const std::string& text, const ValueSchema& s);

/// Throws Error (ExitCode::config) naming `where` unless the value satisfies the schema; is_whole
/// decides what an integer is. Strings with a NUL character are refused: file names end there.
void check_value(const nlohmann::json& value, const ValueSchema& schema, const std::string& where);

}  // namespace bamtrain
