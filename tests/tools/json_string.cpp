#include "data_tools/json_string.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "core/json.h"

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
  CHECK(taken(R"({"text":null,"a":{"text":"x"}})") == "");
  CHECK(taken(R"({"t\u0065\u0078t":"x"})") == "x");
  CHECK(taken(R"({"caf\u00e9":"x","text":"y"})", "caf\xC3\xA9") == "x");
  CHECK(taken(R"({"\ud83d\ude00\n":"x","\ud83d\ude00":1})", "\xF0\x9F\x98\x80\n") == "x");
  CHECK(taken(R"({"a\u0000b":"x","a":1})", std::string_view("a\0b", 3)) == "x");
  CHECK(taken(R"({"":"x","\u0000":1})", "") == "x");
  CHECK(taken(R"({"\"":"x"})", "\"") == "x");
}

TEST_CASE("what has no such string is left as it is") {
  const std::vector<std::string> lines = {"",
                                          "[]",
                                          "\"text\"",
                                          "{",
                                          "{}",
                                          R"({"text":1})",
                                          R"({"other":"x"})",
                                          R"({"text":"x"} x)",
                                          R"({"text":"x",})",
                                          R"({,"text":"x"})",
                                          R"({"text" "x"})",
                                          R"({"text":"x","text":"y"})",
                                          R"({"a":1,"a":2,"text":"x"})",
                                          R"({"text":"x","te\u0078t":"y"})",
                                          R"({"text":null,"text":"y"})",
                                          R"({"text":"x","text":null})",
                                          R"({"text":"x","text":{}})",
                                          R"({"text":"x","b":{"a":1,"\u0061":2}})",
                                          R"({"\/":1,"text":"x","/":2})",
                                          R"({"\ud83d\ude00":1,"text":"x","\uD83D\uDE00":2})",
                                          "{\"\\u00e9\":1,\"text\":\"x\",\"\xC3\xA9\":2}",
                                          R"({"\ud83d":1,"text":"x"})",
                                          R"({"\x":1,"text":"x"})",
                                          R"({"tex":"x","text ":"x","te\u0000xt":"x"})",
                                          R"({"text":nul})",
                                          R"({"text":nulll})",
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

// Every pair of members. The text equals that of a full parse; if there is none, the full parse
// finds no such string either.
TEST_CASE("whatever two members a line has, the text is that of a parser that builds everything") {
  const std::vector<std::string> keys = {
      "text",  "te\\u0078t",     "\\u0074ext",      "a", "\\u0061", "", "\\\\",
      "texts", "\\ud83d\\ude00", "\xF0\x9F\x98\x80"};
  const std::vector<std::string> values = {R"("x")",
                                           R"("\u0078\n")",
                                           "null",
                                           "1",
                                           "[null]",
                                           R"({"text":"y"})",
                                           R"({"a":1,"\u0061":2})",
                                           R"({"\u0061":{"a":{"text":null}}})"};
  int found = 0;
  const auto check = [&](const std::string& line) {
    INFO(line);
    std::optional<std::string> expected;
    try {
      const json parsed = parse_json(line, {"line", ExitCode::data});
      const auto it = parsed.find("text");
      if (it != parsed.end() && it->is_null()) expected = "";
      if (it != parsed.end() && it->is_string()) expected = it->get<std::string>();
    } catch (const Error&) {
    }
    CHECK(taken(line) == expected);
    found += expected.has_value();
  };
  const auto member = [](const std::string& key, const std::string& value) {
    return "\"" + key + "\":" + value;
  };
  for (const std::string& a : keys) {
    for (const std::string& of_a : values) {
      for (const std::string& b : keys) {
        for (const std::string& of_b : values) {
          check("{" + member(a, of_a) + "," + member(b, of_b) + "}");
        }
      }
    }
  }
  CHECK(found > 500);
}

TEST_CASE("the string lies in the memory of its line, whatever else the line has") {
  const std::string text = ":\"" + std::string(1 << 20, 'x') + "\\n\"";
  std::string keys, levels;
  for (int i = 0; i < 1000; ++i) keys += "\"\\u0061" + std::to_string(i) + "\":null,";
  for (int i = 0; i < 40; ++i) levels += R"({"\u0061":null,"b":[)";
  for (int i = 0; i < 40; ++i) levels += "]}";
  for (const std::string& form :
       {"{\"text\"" + text + ",\"n\":[0,1,2]}", "{\"caf\\u00e9\":{},\"text\"" + text + "}",
        "{\"\\u0074ext\"" + text + "}", "{" + keys + "\"text\"" + text + "}",
        "{\"n\":" + levels + ",\"text\"" + text + ",\"\\\"\":null}",
        "{\"" + std::string(1 << 20, 'k') + "\":0,\"text\"" + text + "}"}) {
    std::string line = form;
    INFO(line.substr(0, 40));
    const char* const memory = line.data();
    const std::optional<std::string> found = take_json_string(&line, "text");
    REQUIRE(found);
    CHECK(found->size() == (1 << 20) + 1);
    CHECK(found->data() == memory);
  }
  std::string line = "{\"n\":\"" + std::string(1 << 20, 'x') + "\",\"text\":null}";
  CHECK(take_json_string(&line, "text") == "");
}
