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
  // null, like a null in parquet.
  for (const char* line : {R"({"text": " \n"})", R"({"text": null})"}) {
    const TextResult r = text_of(line, DocumentKind::jsonl);
    CHECK_FALSE(r.text.has_value());
    CHECK(r.counts.empty == 1);
  }
}

TEST_CASE("bad JSON lines are refused by file and line") {
  const auto refused = [](const std::string& line, const std::string& part) {
    const std::string message = refusal(line, DocumentKind::jsonl);
    INFO(message);
    CHECK(contains(message, "books.jsonl:7"));
    CHECK(contains(message, part));
    CHECK(contains(message, "; "));
  };
  refused("{\"text\": \"cut o", "books.jsonl:7:15: invalid JSON");
  refused("{\"text\": \"a\"} {\"text\": \"b\"}", "books.jsonl:7:15: text after the JSON value");
  refused("not json", "books.jsonl:7:2: invalid JSON");
  refused("{\"text\": \"\\ud83c lone\"}", "books.jsonl:7:11: expected UTF-16 surrogates in pairs");
  refused("{\"text\": \"\\ud83c lone\"}",
          "found \\ud83c alone; repair or remove the line, or "
          "choose --invalid-utf8 replace or skip");
  refused("{\"text\": NaN}", "number");
  refused(std::string("{\"text\": \"a\0\"}", 14), "NUL");
  refused("[\"text\"]", "array");
  refused("{\"content\": \"a\", \"url\": \"b\"}", "field \"text\": missing (found content, url)");
  refused("{}", "field \"text\": missing (the object is empty)");
  refused("{\"text\": 5}", "number");
  refused(std::string(100'000, '['), "nested deeper than");
}

TEST_CASE(
    "a JSON line with a key twice is refused, wherever it is: readers disagree on its value") {
  for (const char* line :
       {R"({"text": "a", "text": "b"})", R"({"text": "a", "te\u0078t": "b"})",
        R"({"text": "a", "meta": {"id": 1, "id": 2}})", R"({"text": "a", "id": 1, "id": 1})"}) {
    const std::string message = refusal(line, DocumentKind::jsonl);
    INFO(message);
    CHECK(contains(message, "books.jsonl:7:"));
    CHECK(contains(message, "duplicate key"));
    CHECK(contains(message, "repair or remove the line"));
  }
  CHECK(text_of(R"({"text": "a", "one": {"id": 1}, "two": {"id": 2}})", DocumentKind::jsonl).text ==
        "a");
}

// Python's json module writes these, and reads them back.
TEST_CASE("numbers that are not finite, in other fields, leave the text as it is") {
  CHECK(
      text_of(R"({"score": NaN, "text": "NaN \"Infinity\" -Infinity", "x": [-Infinity, Infinity]})",
              DocumentKind::jsonl)
          .text == "NaN \"Infinity\" -Infinity");
  CHECK(text_of("{\"text\": \"a\", \"score\": NaN}\r", DocumentKind::jsonl).text == "a");
  CHECK(contains(refusal("{\"text\": \"a\", \"x\": NaNa}", DocumentKind::jsonl), "invalid JSON"));
}

TEST_CASE("half a pair of surrogates in JSON is bad UTF-8: replaced, or skipped and counted") {
  struct Case {
    std::string spelled, text;
  };
  const std::string bad = "\xEF\xBF\xBD", cake = "\xF0\x9F\x8D\xB0";
  for (const Case& c : std::vector<Case>{{"a \\ud83d", "a " + bad},
                                         {"\\udf70\\ud83c", bad + bad},
                                         {"\\uD83C\\uDF70\\uD83C", cake + bad},
                                         {"\\ud83c\\ud83c\\udf70", bad + cake},
                                         {"\\\\ud83d \\ud83d", "\\ud83d " + bad},
                                         {"\\ud83d\\u0041", bad + "A"}}) {
    INFO(c.spelled);
    const std::string line = "{\"text\": \"" + c.spelled + "\"}";
    const TextResult replaced = text_of(line, DocumentKind::jsonl, InvalidUtf8::replace);
    CHECK(replaced.text == c.text);
    CHECK(replaced.counts.replaced == 1);
    const TextResult skipped = text_of(line, DocumentKind::jsonl, InvalidUtf8::skip);
    CHECK_FALSE(skipped.text.has_value());
    CHECK(skipped.counts.skipped == 1);
  }
  for (const InvalidUtf8 how : {InvalidUtf8::error, InvalidUtf8::replace, InvalidUtf8::skip}) {
    const TextResult good =
        text_of(R"({"text": "\ud83c\udf70 \\ud83c"})", DocumentKind::jsonl, how);
    CHECK(good.text == cake + " \\ud83c");
    CHECK(good.counts.replaced + good.counts.skipped == 0);
  }
  // Both kinds in one line count as one document.
  const TextResult both =
      text_of("{\"text\": \"\xFF\\ud83d\"}", DocumentKind::jsonl, InvalidUtf8::replace);
  CHECK(both.text == bad + bad);
  CHECK(both.counts.replaced == 1);
  CHECK(both.counts.invalid_bytes == 1 + 6);
  // Six bytes each, for the limit of a tenth of a text.
  const TextResult three = text_of("{\"text\": \"\\ud83d a \\udf70\\ud83c\"}", DocumentKind::jsonl,
                                   InvalidUtf8::replace);
  CHECK(three.counts.invalid_bytes == 3 * 6);
  CHECK(contains(three.counts.first_invalid, "books.jsonl:7"));
}

TEST_CASE("a NUL byte is in no plain text, whatever becomes of bad UTF-8") {
  const std::string text("line\n\xFF bi\0nary", 14);
  for (const InvalidUtf8 how : {InvalidUtf8::error, InvalidUtf8::replace, InvalidUtf8::skip}) {
    for (const DocumentKind kind : {DocumentKind::line, DocumentKind::file, DocumentKind::wikitext,
                                    DocumentKind::blank_line}) {
      const std::string message = error_of(ExitCode::data, [&] { text_of(text, kind, how); });
      CHECK(contains(message, "books.jsonl:8: not text: NUL byte at offset 109"));
    }
  }
  // A JSON string may contain NUL, and a column's text is taken as written.
  CHECK(text_of(R"({"text": "a\u0000"})", DocumentKind::jsonl).text == std::string("a\0", 2));
  CHECK(text_of(std::string("a\0", 2), DocumentKind::row).text == std::string("a\0", 2));
}

TEST_CASE("bytes that are no UTF-8 are counted, the first by its place, and limited to a tenth") {
  const TextResult r = text_of("a\n\xE4\xBA b \xFF", DocumentKind::file, InvalidUtf8::replace);
  CHECK(r.counts.invalid_bytes == 3);
  CHECK(r.counts.first_invalid == "books.jsonl:8, offset 102");
  TextCounts sum;
  sum.add({1, 0, 0, 0, ""});
  sum.add(r.counts);
  sum.add({1, 0, 2, 6551, "later"});
  CHECK(sum.empty == 2);
  CHECK(sum.invalid_bytes == 6554);
  CHECK(sum.first_invalid == "books.jsonl:8, offset 102");
  require_mostly_utf8(sum, 65'535);  // too few bytes to decide
  require_mostly_utf8(sum, 65'540);
  const std::string message = error_of(ExitCode::data, [&] { require_mostly_utf8(sum, 65'539); });
  CHECK(contains(message,
                 "books.jsonl:8, offset 102: expected at most 10 % of bytes that are not valid "
                 "UTF-8"));
  CHECK(contains(message, "found 10.0 % of the 65539 bytes"));
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
