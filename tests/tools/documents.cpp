#include "data_tools/documents.h"

#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

std::vector<RawDocument> documents_of(const std::string& text, DocumentKind kind,
                                      int64_t max_bytes = int64_t{1} << 30) {
  const TemporaryFolder folder;
  const std::string path = folder.file("input");
  write_bytes(path, text);
  DocumentReader reader(path, kind, max_bytes);
  std::vector<RawDocument> found;
  for (RawDocument d; reader.next(&d);) found.push_back(d);
  return found;
}

std::vector<std::string> texts_of(const std::string& text, DocumentKind kind) {
  std::vector<std::string> texts;
  for (const RawDocument& d : documents_of(text, kind)) texts.push_back(d.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("a line is a document, empty ones too") {
  CHECK(texts_of("one\n\n two \nthree", DocumentKind::line) == Texts{"one", "", " two ", "three"});
}

TEST_CASE("carriage returns end lines, alone and before a newline") {
  CHECK(texts_of("one\r\n\r\ntwo\rthree\r\r\nfour\r", DocumentKind::line) ==
        Texts{"one", "", "two", "three", "", "four"});
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const RawDocument& d : documents_of("a\r\nbc\rd\ne", DocumentKind::line)) {
    places.emplace_back(d.line, d.offset);
  }
  CHECK(places == std::vector<std::pair<int64_t, int64_t>>{{1, 0}, {2, 3}, {2, 6}, {3, 8}});
}

TEST_CASE("a file is one document, every byte of it") {
  CHECK(texts_of("one\n\n two \n", DocumentKind::file) == Texts{"one\n\n two \n"});
  CHECK(texts_of("", DocumentKind::file) == Texts{""});
}

TEST_CASE("blocks between blank lines are documents") {
  CHECK(texts_of("\n\na\nb\n\n \t\r\nc\n\n\n", DocumentKind::blank_line) == Texts{"a\nb", "c"});
  CHECK(texts_of("a", DocumentKind::blank_line) == Texts{"a"});
  CHECK(texts_of(" a\n  b ", DocumentKind::blank_line) == Texts{" a\n  b "});
  CHECK(texts_of("\n \n", DocumentKind::blank_line).empty());
}

TEST_CASE("JSON lines are documents, blank ones are not") {
  CHECK(texts_of("{\"a\":1}\n\n{}\n  \n", DocumentKind::jsonl) == Texts{"{\"a\":1}", "{}"});
}

TEST_CASE("a WikiText title has exactly one equals sign on either side") {
  for (const char* title : {" = Robert <unk> = ", " = X = ", "= Du Fu =", " = 1 = 2 = "}) {
    CHECK(is_wikitext_title(title));
  }
  for (const char* other : {" = = Career = = ", " = = = 2000s = = = ", " = ", " = = ", "", " text ",
                            " = text ", " text = ", " =X= ", " = Title = = ", " = = Title = "}) {
    INFO(other);
    CHECK_FALSE(is_wikitext_title(other));
  }
}

TEST_CASE("WikiText articles go from title to title, sections and formulas stay inside") {
  const std::string first = " = Alpha = \n \n text of a\n = = Part = = \n more\n \n";
  const std::string second =
      " = Beta = \n \n the gain is\n = 1 / s and k = \n 2 .\n \n = odd =\n x\n = legend = \n \n";
  const std::string third = " = Gamma = ";
  CHECK(texts_of(" \n" + first + second + third, DocumentKind::wikitext) ==
        Texts{first, second, third});
}

std::string with_crlf(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\r\n");
  }
  return text;
}

std::string warning_of(const std::string& text, DocumentKind kind) {
  const TemporaryFolder folder;
  write_bytes(folder.file("input"), text);
  DocumentReader reader(folder.file("input"), kind, int64_t{1} << 30);
  for (RawDocument d; reader.next(&d);) {
  }
  return reader.warning();
}

TEST_CASE("WikiText articles are told by their titles where no line is blank, which is said") {
  const std::string first = " = Alpha = \n text of a\n = = Part = = \n more\n";
  const std::string second = " = Beta = \n text\n", third = " = Gamma = \n text of c";
  CHECK(texts_of(first + second + third, DocumentKind::wikitext) == Texts{first, second, third});
  CHECK(texts_of("stray\n" + first + second, DocumentKind::wikitext) ==
        Texts{"stray\n", first, second});
  CHECK(texts_of(with_crlf(first + second + third), DocumentKind::wikitext) ==
        Texts{with_crlf(first), with_crlf(second), with_crlf(third)});
  // A blank line before the first title, or only some lines, does not count as blank lines on both
  // sides.
  CHECK(texts_of(" \r\n" + first + second + "\n" + third, DocumentKind::wikitext) ==
        Texts{first, second + "\n", third});
  CHECK(contains(warning_of(first + second, DocumentKind::wikitext),
                 "input: titles do not stand between blank lines: each of the 2 lines"));
}

TEST_CASE("CRLF divides WikiText as newlines do") {
  const std::string first = " = Alpha = \n \n text\n = 1 / s and k = \n 2 .\n \n";
  const std::string second = " = Beta = \n \n text\n";
  for (const std::string start : {"", " \n"}) {
    CHECK(texts_of(with_crlf(start + first + second), DocumentKind::wikitext) ==
          Texts{with_crlf(first), with_crlf(second)});
    CHECK(warning_of(with_crlf(start + first + second), DocumentKind::wikitext).empty());
  }
}

TEST_CASE("titles of WikiText inside of a document are a warning") {
  const std::string title = " = Title = \n text\n";
  // Only the first line of this form stands alone.
  const std::string odd = "\n = Odd = \n\n" + title + title + title;
  CHECK(texts_of(odd, DocumentKind::wikitext).size() == 1);
  CHECK(contains(warning_of(odd, DocumentKind::wikitext),
                 "input: 4 lines of the form of a WikiText title, \" = Title = \", of which 1 "));
  CHECK(contains(warning_of(title + title + title, DocumentKind::file),
                 "input: one document, with 3 lines of the form of a WikiText title"));
  CHECK(warning_of("a = b\n= = c = =\n", DocumentKind::file).empty());
  CHECK(warning_of("text\n", DocumentKind::wikitext).empty());
}

TEST_CASE("text before the first WikiText title is a document where it is not blank") {
  CHECK(texts_of("\nstray\n\n = T = \n\nx", DocumentKind::wikitext) ==
        Texts{"stray\n\n", " = T = \n\nx"});
  CHECK(texts_of("\n \n", DocumentKind::wikitext).empty());
  CHECK(texts_of(" = T = ", DocumentKind::wikitext) == Texts{" = T = "});
}

TEST_CASE("WikiText-2 has its 600, 60 and 60 articles, which are its whole text") {
  const std::map<std::string, size_t> articles = {{"train", 600}, {"valid", 60}, {"test", 60}};
  for (const auto& [name, count] : articles) {
    const std::string path = shared_data("wikitext-2/" + name + ".txt");
    if (path.empty()) return;
    const std::string text = read_bytes(path);
    const Texts found = texts_of(text, DocumentKind::wikitext);
    CHECK(found.size() == count);
    std::string joined;
    for (const std::string& article : found) {
      CHECK(article.starts_with(" = "));
      joined += article;
    }
    CHECK(text == text.substr(0, text.find(" = ")) + joined);
    CHECK(is_blank(text.substr(0, text.find(" = "))));
  }
}

TEST_CASE("documents know their line and offset") {
  const std::string text = "a\n\nb\nc\n\n = T = \n\nd\n";
  const auto places = [&](DocumentKind kind) {
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const RawDocument& d : documents_of(text, kind)) found.emplace_back(d.line, d.offset);
    return found;
  };
  using Places = std::vector<std::pair<int64_t, int64_t>>;
  CHECK(places(DocumentKind::blank_line) == Places{{1, 0}, {3, 3}, {6, 8}, {8, 17}});
  CHECK(places(DocumentKind::wikitext) == Places{{1, 0}, {6, 8}});
  CHECK(places(DocumentKind::file) == Places{{1, 0}});
  CHECK(places(DocumentKind::line).back() == std::pair<int64_t, int64_t>{8, 17});
}

TEST_CASE("a document past the limit is refused by the number of its first line") {
  const std::string text = "a\n\nbb\ncc\n\n";
  const std::map<DocumentKind, int64_t> sizes = {{DocumentKind::blank_line, 5},
                                                 {DocumentKind::wikitext, 10}};
  for (const auto& [kind, size] : sizes) {
    CHECK_FALSE(documents_of(text, kind, size).empty());
    const std::string message =
        error_of(ExitCode::data, [&, k = kind, s = size] { documents_of(text, k, s - 1); });
    CHECK(contains(message, kind == DocumentKind::blank_line ? "input:3" : "input:1"));
    CHECK(contains(message, "--max-document-bytes"));
  }
}

TEST_CASE("how an input is read follows from its name, --format and --document") {
  const auto kind = [](const std::string& path, const std::string& format,
                       std::optional<DocumentKind> given) {
    return document_kind_of(path, format, given);
  };
  for (const char* name : {"a.jsonl", "a.jsonl.zst", "a.jsonl.xz", "a.jsonl.gz"}) {
    CHECK(kind(name, "", {}) == DocumentKind::jsonl);
    CHECK(kind(name, "", DocumentKind::line) == DocumentKind::jsonl);
    CHECK(kind(name, "txt", DocumentKind::line) == DocumentKind::line);
  }
  for (const char* name : {"a.txt", "a.txt.zst", "a.txt.xz", "a.txt.gz"}) {
    CHECK(kind(name, "", DocumentKind::wikitext) == DocumentKind::wikitext);
    CHECK(kind(name, "", DocumentKind::jsonl) == DocumentKind::jsonl);
    CHECK(kind(name, "jsonl", {}) == DocumentKind::jsonl);
  }
  CHECK(kind("-", "jsonl", {}) == DocumentKind::jsonl);
  CHECK(kind("wiki.train.raw", "txt", DocumentKind::wikitext) == DocumentKind::wikitext);
}

TEST_CASE("an input whose reading is left open is refused with what to add") {
  const auto refusal = [](const std::string& path, const std::string& format,
                          std::optional<DocumentKind> given) {
    return error_of(ExitCode::usage, [&] { document_kind_of(path, format, given); });
  };
  CHECK(contains(refusal("a.txt", "", {}), "--document"));
  CHECK(contains(refusal("-", "txt", {}), "--document"));
  CHECK(contains(refusal("-", "", DocumentKind::line), "--format"));
  CHECK(contains(refusal("a.pdf", "", DocumentKind::line), "a.pdf"));
  CHECK(contains(refusal("a.txt", "txt", DocumentKind::jsonl), "--format"));
}

}  // namespace
}  // namespace bamtrain
