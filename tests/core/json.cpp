// What the parser refuses, and the position it reports.

#include "core/json.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "core/abbreviate.h"
#include "core/line_reader.h"
#include "data/files.h"

using bamtrain::Error;
using bamtrain::parse_json;

namespace {

std::string refusal(const std::string& text) {
  return bamtrain::testing::error_or_none(bamtrain::ExitCode::config, [&] {
    parse_json(text, {"f", bamtrain::ExitCode::config});
  });
}

void check_mentions(const std::string& text, std::initializer_list<const char*> parts) {
  INFO("the message: " << text);
  for (const char* part : parts) {
    INFO("must mention: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("every kind of JSON value is read as it is written") {
  const nlohmann::json v =
      parse_json(R"( {"a": [1, -2, 0.5, "x\n\u00e9", true, false, null], "b": {"c": {}}} )",
                 {"f", bamtrain::ExitCode::config});
  CHECK(v["a"][0] == 1);
  CHECK(v["a"][1] == -2);
  CHECK(v["a"][2] == 0.5);
  CHECK(v["a"][3] == "x\n\xc3\xa9");
  CHECK(v["a"][4] == true);
  CHECK(v["a"][6].is_null());
  CHECK(v["b"]["c"].empty());
  CHECK(v.size() == 2);
}

TEST_CASE("a duplicate key is named with its path, line and column") {
  check_mentions(refusal("{\"a\": 1,\n  \"b\": {\"c\": 1, \"d\": 2,\n \"c\": 3}}"),
                 {"f:3:2:", "\"b.c\"", "duplicate key", "remove one"});
}

TEST_CASE("duplicates are found whatever their spelling") {
  check_mentions(refusal("{\"ab\": 1, \"a\\u0062\": 2}"), {"f:1:11:", "\"ab\""});
  check_mentions(refusal("{\"a\\\"\": 1, \"a\\\"\": 2}"), {"f:1:12:"});
  check_mentions(refusal("[{\"a\": 1}, {\"a\": 1, \"a\": 2}]"), {"f:1:21:"});
  CHECK(refusal("[{\"a\": 1}, {\"a\": 2}]").empty());
}

TEST_CASE("text after the value is refused at its place") {
  check_mentions(refusal("{}\n{}"), {"f:2:1:", "text after the JSON value", "remove"});
  check_mentions(refusal("{} x"), {"f:1:4:", "text after the JSON value"});
  check_mentions(refusal("{\"a\": 1}}"), {"f:1:9:", "text after the JSON value"});
  CHECK(refusal("{}  \n\t\r\n").empty());
}

TEST_CASE("a NUL byte does not hide what follows it") {
  check_mentions(refusal(std::string("{}\0{", 4)), {"f:1:3:", "NUL"});
  check_mentions(refusal(std::string("{\"a\0\": 1}", 9)), {"f:1:4:", "NUL"});
}

TEST_CASE("comments and spare commas are refused with the remedy") {
  check_mentions(refusal("{\n// no\n}"), {"f:2:1:", "remove the comment"});
  check_mentions(refusal("{/* no */}"), {"f:1:2:", "remove the comment"});
  check_mentions(refusal("{} # no"), {"f:1:4: text after the JSON value"});
  check_mentions(refusal("# A page\n\nof text"), {"f:1:1:", "begins with {", "no comments"});
  check_mentions(refusal("PAR1"), {"f:1:1:", "begins with {"});
  check_mentions(refusal("{\"a\": 1,\n}"), {"f:2:1:", "remove the comma"});
  check_mentions(refusal("[1, 2, ]"), {"f:1:8:", "remove the comma"});
}

TEST_CASE("damaged text is refused where it is damaged") {
  check_mentions(refusal("{\"a\": 1 \"b\": 2}"), {"f:1:", "invalid JSON"});
  check_mentions(refusal("{'a': 1}"), {"f:1:2:"});
  check_mentions(refusal("{\"a\": 01}"), {"f:1:8:"});
  check_mentions(refusal("{\"a\": NaN}"), {"f:1:7:"});
  check_mentions(refusal("{\"a\": 1e999}"), {"f:1:", "1e999"});
  check_mentions(refusal("{\"a\": \"\xff\"}"), {"f:1:8:", "UTF-8"});
  check_mentions(refusal(""), {"f:1:1:", "empty"});
  check_mentions(refusal("{\"a\": [1, 2"), {"f:1:", "cut off"});
}

TEST_CASE("a byte order mark is refused, not skipped") {
  check_mentions(refusal("\xEF\xBB\xBF{}"), {"f:1:1:", "byte order mark", "without one"});
}

TEST_CASE("a text that a program wrote has the remedy and the code of its source") {
  try {
    parse_json("{", {"manifest.json", bamtrain::ExitCode::data, "restore it"});
    FAIL("read");
  } catch (const Error& e) {
    CHECK(e.code() == bamtrain::ExitCode::data);
    check_mentions(e.what(), {"manifest.json:1:", "restore it"});
  }
}

TEST_CASE("nesting has a limit, so that no text exhausts the stack") {
  CHECK(refusal(std::string(100, '[') + std::string(100, ']')).empty());
  check_mentions(refusal(std::string(101, '[') + std::string(101, ']')),
                 {"f:1:101:", "100 levels"});
  check_mentions(refusal(std::string(1000000, '[')), {"100 levels"});
}

TEST_CASE("a text of very many values is refused before it fills the memory") {
  const auto list = [](size_t values) {
    std::string text = "[";
    for (size_t i = 1; i < values; ++i) text += i == 1 ? "0" : ",0";
    return text + "]";
  };
  CHECK(refusal(list(4194304)).empty());  // the list itself counts as one
  check_mentions(refusal(list(4194305)), {"f:1:8388609:", "more than 4194304 values"});
}

TEST_CASE("a line's number is that of its file") {
  const auto line = [](const std::string& text) {
    try {
      bamtrain::parse_json_line(text, {"f", bamtrain::ExitCode::io, "restore it", 7});
    } catch (const Error& e) {
      CHECK(e.code() == bamtrain::ExitCode::io);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(line("{\"a\": 1}").empty());
  check_mentions(line("{\"a\": 1,}"), {"f:7:9: invalid JSON: ", "restore it"});
  check_mentions(line(""), {"f:7:1: invalid JSON: "});
  check_mentions(line("[1]"), {"f:7: expected a JSON object, found [1]; restore it"});
  check_mentions(line(std::string("{\"a\": \"x\0y\"}", 13)), {"f:7:9: ", "NUL byte"});
  check_mentions(line(std::string(bamtrain::LineReader::kMost + 1, ' ')),
                 {"f:7: line longer than 67108864 bytes"});
}

TEST_CASE("an abbreviation never cuts a character in two") {
  using bamtrain::abbreviate;
  CHECK(abbreviate("short", 5) == "short");
  CHECK(abbreviate("longer", 5) == "longe...");
  CHECK(abbreviate("abc\xc3\xa9", 4) == "abc...");
  CHECK(abbreviate("abc\xc3\xa9", 5) == "abc\xc3\xa9");
}
