#pragma once
// From a raw document to the text that is encoded: valid UTF-8, taken out of its JSON.

#include <cstdint>
#include <string>

#include "data_tools/documents.h"

namespace bamtrain {

/// What becomes of a document that is not well-formed UTF-8.
enum class InvalidUtf8 {
  error,    // an Error that names the place
  replace,  // U+FFFD for each bad part
  skip,     // the document is left out, and counted
};

/// Only replaces and skips are counted here.
struct TextCounts {
  int64_t empty = 0;          // documents without visible characters, JSON's null too: left out
  int64_t replaced = 0;       // documents with U+FFFD put in
  int64_t skipped = 0;        // documents left out for bad UTF-8
  int64_t invalid_bytes = 0;  // that belong to no well-formed sequence
  std::string first_invalid;  // where the first of those is: "a.txt:12, offset 345"

  /// Those of documents that come after.
  void add(const TextCounts& other);
};

/// The text of `raw`, read from `path`, into `*text`; false where the document is left out.
/// With DocumentKind::jsonl it is the string `field` of the line's object, with row the row's as it
/// is; elsewhere line ends of CRLF have become newlines. A surrogate without its other half in a
/// line of JSON is bad UTF-8; numbers that are not finite are none of its errors. Error (data)
/// naming path, line and byte for bad UTF-8 (InvalidUtf8::error) and for a NUL byte in plain text;
/// path and line for what is no JSON object, a missing field, and a field that is neither a string
/// nor null.
bool document_text(RawDocument raw, const std::string& path, DocumentKind kind,
                   const std::string& field, InvalidUtf8 invalid, std::string* text,
                   TextCounts* counts);

/// Error (data) where more than a tenth of the `bytes` of all documents so far, 64 KiB or more, is
/// no UTF-8: it is no damaged text but something else, which InvalidUtf8 is not for.
void require_mostly_utf8(const TextCounts& counts, int64_t bytes);

}  // namespace bamtrain
