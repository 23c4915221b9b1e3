#include "data_tools/json_extensions.h"

#include "catch.h"

namespace bamtrain {
namespace {

std::string finite(std::string json) {
  replace_non_finite(&json);
  return json;
}

TEST_CASE("non-finite numbers become zeros of their width, and strings stay") {
  CHECK(finite(R"({"a": NaN, "b": [-Infinity,Infinity]})") ==
        R"({"a": 0  , "b": [-0       ,0       ]})");
  for (const char* same :
       {R"({"NaN": "NaN \" NaN", "b": "\\"})", R"(["\\\"NaN"])", "[1NaN]", "{}", ""}) {
    CHECK(finite(same) == same);
  }
  CHECK(finite(R"(["\\", NaN])") == R"(["\\", 0  ])");
}

TEST_CASE("a lone surrogate is found where it stands") {
  CHECK(first_lone_surrogate(R"("\ud83c\udf70")") == std::string::npos);
  CHECK(first_lone_surrogate(R"("\\ud83c")") == std::string::npos);
  CHECK(first_lone_surrogate(R"("\u0041\ud7ff\ue000")") == std::string::npos);
  CHECK(first_lone_surrogate(R"("\ud83c")") == 1);
  CHECK(first_lone_surrogate(R"("\ud83c\udf70\udf70")") == 13);
  CHECK(first_lone_surrogate(R"("\\\ud83c)") == 3);
  CHECK(first_lone_surrogate(R"("\ud83)") == std::string::npos);
  CHECK(first_lone_surrogate("\\") == std::string::npos);
}

}  // namespace
}  // namespace bamtrain
