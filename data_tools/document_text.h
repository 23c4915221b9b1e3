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
  int64_t empty = 0;     // documents without visible characters: left out
  int64_t replaced = 0;  // documents with U+FFFD put in
  int64_t skipped = 0;   // documents left out for bad UTF-8
};

/// The text of `raw`, read from `path`, into `*text`; false where the document is left out.
/// With DocumentKind::jsonl it is the string `field` of the line's object, with row the row's as it
/// is; elsewhere line ends of CRLF have become newlines. Error (data) naming path, line and byte
/// for bad UTF-8 (InvalidUtf8::error), path and line for what is no JSON object, a missing field,
/// and a field that is no string.
bool document_text(RawDocument raw, const std::string& path, DocumentKind kind,
                   const std::string& field, InvalidUtf8 invalid, std::string* text,
                   TextCounts* counts);

}  // namespace bamtrain
