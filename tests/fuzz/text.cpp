// Text, plain or compressed, split into documents. The first byte selects what a document is, the
// second how invalid UTF-8 is handled.

#include "core/utf8.h"
#include "data_tools/document_text.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  if (size < 2) return 0;
  constexpr DocumentKind kKinds[] = {DocumentKind::line, DocumentKind::file,
                                     DocumentKind::blank_line, DocumentKind::wikitext,
                                     DocumentKind::jsonl};
  constexpr InvalidUtf8 kInvalid[] = {InvalidUtf8::error, InvalidUtf8::replace, InvalidUtf8::skip};
  const DocumentKind kind = kKinds[data[0] % std::size(kKinds)];
  const InvalidUtf8 invalid = kInvalid[data[1] % std::size(kInvalid)];
  const std::string path =
      folder.write("input", {reinterpret_cast<const char*>(data) + 2, size - 2});
  accepts([&] {
    constexpr int64_t kLongest = 1 << 16;
    constexpr int kMost = 10'000;  // a few bytes may expand to millions of lines
    DocumentReader documents(path, kind, kLongest);
    RawDocument raw;
    TextCounts counts;
    int64_t line = 0;
    for (int n = 0; n < kMost && documents.next(&raw); ++n) {
      require(raw.line >= line, "documents in the order of their lines");
      require(static_cast<int64_t>(raw.text.size()) <= kLongest, "documents within the limit");
      line = raw.line;
      std::string text;
      if (!document_text(raw, path, kind, "text", invalid, &text, &counts)) continue;
      require(first_invalid_utf8(text) == std::string::npos, "a document in UTF-8");
      require(!is_blank(text), "a document that says something");
    }
    require(documents.taken() <= static_cast<int64_t>(size) - 2, "no more bytes than are there");
  });
  return 0;
}
