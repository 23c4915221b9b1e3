#include "core/json_object.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "data/files.h"

namespace bamtrain {
namespace {

const JsonPlace kPlace = {"f:3", ExitCode::io, "restore it"};

/// The message of the Error that `read` throws.
template <class F>
std::string object_refusal(F&& read) {
  return testing::error_of(ExitCode::io, read);
}

TEST_CASE("members are read as they are written") {
  const auto value = nlohmann::json::parse(
      R"({"n": 3, "x": -0.5, "t": "text", "most": 9223372036854775807, "l": [1, 2.5],
          "o": {"inner": 4}, "empty": []})");
  const JsonObject object(value, kPlace);
  CHECK(object.count("n") == 3);
  CHECK(object.number("n") == 3);
  CHECK(object.number("x") == -0.5);
  CHECK(std::isnan(object.number_or_none("absent")));
  CHECK(object.text("t") == "text");
  CHECK(object.count("most") == INT64_MAX);
  CHECK(object.object("o").count("inner") == 4);
  CHECK(json_numbers(object.list("l"), kPlace) == std::vector<double>{1, 2.5});
  CHECK(json_numbers(object.list("empty"), kPlace).empty());
  CHECK(object.has("n"));
  CHECK_FALSE(object.has("absent"));
}

TEST_CASE("what is absent or of another type is named with its place") {
  const nlohmann::json value = {
      {"s", "x"}, {"minus", -1}, {"large", UINT64_MAX}, {"o", {{"l", {1, "y"}}}}};
  const JsonObject object(value, kPlace);
  const std::string end = "; restore it";
  CHECK(object_refusal([&] { object.number("s"); }) ==
        "f:3: s: expected a number, found \"x\"" + end);
  CHECK(object_refusal([&] { object.text("none"); }) == "f:3: none: missing (a string)" + end);
  CHECK(object_refusal([&] { object.count("minus"); }) ==
        "f:3: minus: expected an integer, 0 or more, found -1" + end);
  CHECK(object_refusal([&] { object.count("large"); }) ==
        "f:3: large: expected an integer from 0 to 9223372036854775807, found "
        "18446744073709551615" +
            end);
  CHECK(object_refusal([&] {
          JsonObject(nlohmann::json{{"n", 8u}}, kPlace).count("n", 7);
        }) == "f:3: n: expected an integer from 0 to 7, found 8" + end);
  CHECK(object_refusal([&] { object.object("o").object("l"); }) ==
        "f:3: o: l: expected an object, found [1,\"y\"]" + end);
  CHECK(object_refusal([&] { json_numbers(object.object("o").list("l"), kPlace); }) ==
        "f:3: expected a list of numbers, found [1,\"y\"]" + end);
  CHECK(object_refusal([&] { JsonObject(nlohmann::json(3), kPlace); }) ==
        "f:3: expected a JSON object, found 3" + end);
}

}  // namespace
}  // namespace bamtrain
