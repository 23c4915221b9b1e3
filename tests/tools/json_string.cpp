#include "data_tools/json_string.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "catch.h"

using namespace bamtrain;
using nlohmann::json;

namespace {

std::optional<std::string> taken(std::string line, std::string_view field = "text") {
  const std::string before = line;
  std::optional<std::string> text = take_json_string(&line, field);
  if (!text) CHECK(line == before);
  return text;
}

}  // namespace

TEST_CASE("a field's string is what a parser that builds everything gives") {
  const std::vector<std::string> lines = {
      R"({"text":"plain"})",
      R"( { "id" : -1.5e+3 , "text" : "a" , "more" : [ ] } )"
      "\t\r\n",
      R"({"a":[1,[2,{"text":"inner"}],{}],"text":"outer","z":{"text":null}})",
      R"({"text":"\"\\\/\b\f\n\r\t"})",
      R"({"text":"\u0041\u00e9\u65E5\ud83d\ude00 \u0000."})",
      R"({"text":""})",
      "{\"text\":\"\xC3\xA9\x7F\xF0\x9F\x98\x80\"}",
      R"({"":0,"a":true,"b":false,"c":null,"d":0.5E-2,"e":-0,"text":"t"})"};
  for (const std::string& line : lines) {
    INFO(line);
    REQUIRE(taken(line));
    CHECK(*taken(line) == json::parse(line)["text"].get<std::string>());
  }
  CHECK(taken(R"({"a b":"x"})", "a b") == "x");
}

TEST_CASE("what has no such string is left as it is") {
  const std::vector<std::string> lines = {"",
                                          "[]",
                                          "\"text\"",
                                          "{",
                                          "{}",
                                          R"({"text":1})",
                                          R"({"text":null})",
                                          R"({"other":"x"})",
                                          R"({"text":"x"} x)",
                                          R"({"text":"x",})",
                                          R"({,"text":"x"})",
                                          R"({"text" "x"})",
                                          R"({"text":"x","text":"y"})",
                                          R"({"a":1,"a":2,"text":"x"})",
                                          R"({"t\u0065xt":"x"})",
                                          R"({"text":"x","n":[{"a":1,"b":2,"a":3}]})",
                                          "{\"text\":\"a\nb\"}",
                                          R"({"text":"\x"})",
                                          R"({"text":"\u00g0"})",
                                          R"({"text":"\u00)",
                                          R"({"text":"\ud83d"})",
                                          R"({"text":"\ude00"})",
                                          R"({"text":"\ud83d\u0041"})",
                                          R"({"text":"x)",
                                          R"({"text":"x","n":01})",
                                          R"({"text":"x","n":1.})",
                                          R"({"text":"x","n":+1})",
                                          R"({"text":"x","n":1e})",
                                          R"({"text":"x","n":nul})",
                                          R"({"text":"x","n":NaN})",
                                          R"({"text":"x","n":[1,]})",
                                          R"({"text":"x","n":[1})",
                                          R"({'text':'x'})",
                                          R"({text:"x"})",
                                          R"({"text":"x"/**/})",
                                          std::string("{\"text\":\"x\"\0}", 13),
                                          "\xEF\xBB\xBF{\"text\":\"x\"}"};
  for (const std::string& line : lines) {
    INFO(line);
    CHECK_FALSE(taken(line));
  }
  const auto nested = [](int levels) {
    return "{\"text\":\"x\",\"n\":" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  CHECK(taken(nested(99)));
  CHECK_FALSE(taken(nested(100)));
}

TEST_CASE("the string lies in the memory of its line") {
  std::string line = "{\"text\":\"" + std::string(1 << 20, 'x') + "\\n\",\"n\":[0";
  for (int i = 0; i < 1000; ++i) line += ",1";
  line += "]}";
  const char* const memory = line.data();
  const std::optional<std::string> text = take_json_string(&line, "text");
  REQUIRE(text);
  CHECK(text->size() == (1 << 20) + 1);
  CHECK(text->data() == memory);
}
