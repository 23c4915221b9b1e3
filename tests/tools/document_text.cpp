#include "data_tools/document_text.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "catch.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

struct TextResult {
  std::optional<std::string> text;
  TextCounts counts;
};

TextResult text_of(const std::string& raw, DocumentKind kind,
                   InvalidUtf8 invalid = InvalidUtf8::error) {
  TextResult result;
  std::string text;
  // As if it began in line 7 of the file, at byte 100.
  if (document_text({raw, 7, 100}, "books.jsonl", kind, "text", invalid, &text, &result.counts)) {
    result.text = text;
  }
  return result;
}

std::string refusal(const std::string& raw, DocumentKind kind) {
  return error_of(ExitCode::data, [&] { text_of(raw, kind); });
}

TEST_CASE("plain text is given as it is") {
  CHECK(text_of(" a\n\xC3\xA9 ", DocumentKind::file).text == " a\n\xC3\xA9 ");
}

TEST_CASE("CRLF is a line end of the input; a JSON string holds what it spells") {
  for (const DocumentKind kind :
       {DocumentKind::file, DocumentKind::blank_line, DocumentKind::wikitext}) {
    CHECK(text_of("a\r\n\r\nb\rc\r\n", kind).text == "a\n\nb\rc\n");
    CHECK(text_of("a\r\nb\r", kind).text == "a\nb");
  }
  CHECK(text_of("{\"text\": \"a\\r\\n\"}\r", DocumentKind::jsonl).text == "a\r\n");
}

TEST_CASE("the field of a JSON line is the text, escapes decoded, other fields of any kind") {
  CHECK(
      text_of(R"({"id": [1, {"text": "no"}], "text": "caf\u00e9\n\ud83c\udf89 \"q\"", "n": null})",
              DocumentKind::jsonl)
          .text == "caf\xC3\xA9\n\xF0\x9F\x8E\x89 \"q\"");
}

TEST_CASE("documents without visible characters are left out and counted") {
  for (const char* blank : {"", " ", "\n\t \r\n"}) {
    const TextResult r = text_of(blank, DocumentKind::line);
    CHECK_FALSE(r.text.has_value());
    CHECK(r.counts.empty == 1);
  }
  CHECK(text_of(R"({"text": " \n"})", DocumentKind::jsonl).counts.empty == 1);
}

TEST_CASE("bad JSON lines are refused by file and line") {
  const auto refused = [](const std::string& line, const std::string& part) {
    const std::string message = refusal(line, DocumentKind::jsonl);
    INFO(message);
    CHECK(contains(message, "books.jsonl:7"));
    CHECK(contains(message, part));
    CHECK(contains(message, "remedy"));
  };
  refused("{\"text\": \"cut o", "books.jsonl:7:15: expected valid JSON");
  refused("{\"text\": \"a\"} {\"text\": \"b\"}", "books.jsonl:7:15: expected nothing after");
  refused("not json", "books.jsonl:7:2: expected valid JSON");
  refused("{\"text\": \"\\ud83c lone\"}", "expected valid JSON");
  refused(std::string("{\"text\": \"a\0\"}", 14), "NUL");
  refused("[\"text\"]", "array");
  refused("{\"content\": \"a\", \"url\": \"b\"}", "content, url");
  refused("{}", "no field");
  refused("{\"text\": 5}", "number");
  refused("{\"text\": null}", "null");
  refused(std::string(100'000, '['), "levels of nesting");
}

TEST_CASE(
    "a JSON line with a key twice is refused, wherever it is: readers disagree on its value") {
  for (const char* line :
       {R"({"text": "a", "text": "b"})", R"({"text": "a", "te\u0078t": "b"})",
        R"({"text": "a", "meta": {"id": 1, "id": 2}})", R"({"text": "a", "id": 1, "id": 1})"}) {
    const std::string message = refusal(line, DocumentKind::jsonl);
    INFO(message);
    CHECK(contains(message, "books.jsonl:7:"));
    CHECK(contains(message, "for the second time"));
    CHECK(contains(message, "remedy: repair or remove the line"));
  }
  CHECK(text_of(R"({"text": "a", "one": {"id": 1}, "two": {"id": 2}})", DocumentKind::jsonl).text ==
        "a");
}

TEST_CASE("bad UTF-8 is refused by file, line, byte and offset") {
  const std::string message = refusal("good\nbad \xFF here", DocumentKind::file);
  CHECK(contains(message, "books.jsonl:8"));
  CHECK(contains(message, "0xFF"));
  CHECK(contains(message, "offset 109"));
  CHECK(contains(message, "--invalid-utf8"));
  CHECK(contains(refusal("good\r\nbad \xFF here", DocumentKind::file), "offset 110"));
  CHECK(contains(refusal("{\"text\": \"\xC3\"}", DocumentKind::jsonl), "offset 110"));
}

TEST_CASE("bad UTF-8 is replaced or skipped on request, and counted") {
  const TextResult replaced = text_of("a\xFFz", DocumentKind::line, InvalidUtf8::replace);
  CHECK(replaced.text == "a\xEF\xBF\xBDz");
  CHECK(replaced.counts.replaced == 1);
  const TextResult json =
      text_of("{\"text\": \"a\xFFz\"}", DocumentKind::jsonl, InvalidUtf8::replace);
  CHECK(json.text == "a\xEF\xBF\xBDz");
  const TextResult skipped = text_of("a\xFFz", DocumentKind::line, InvalidUtf8::skip);
  CHECK_FALSE(skipped.text.has_value());
  CHECK(skipped.counts.skipped == 1);
  CHECK(skipped.counts.empty == 0);
}

}  // namespace
}  // namespace bamtrain
