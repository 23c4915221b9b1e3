#pragma once
// Turns a raw document into the text to be encoded: extracts it from JSON and validates its UTF-8.

#include <cstdint>
#include <string>

#include "data_tools/documents.h"

namespace bamtrain {

/// Handling of documents with invalid UTF-8.
enum class InvalidUtf8 {
  error,    // throw Error with the position
  replace,  // put U+FFFD for each invalid part
  skip,     // skip the document and count it
};

/// Counts of document_text. Documents that throw are not counted.
struct TextCounts {
  int64_t empty = 0;          // skipped: no visible characters, or JSON null
  int64_t replaced = 0;       // documents with U+FFFD inserted
  int64_t skipped = 0;        // documents skipped for invalid UTF-8
  int64_t invalid_bytes = 0;  // bytes outside of well-formed sequences
  std::string first_invalid;  // position of the first of them: "a.txt:12, offset 345"

  /// Adds the counts of later documents.
  void add(const TextCounts& other);
};

/// Writes the text of `raw`, read from `path`, to `*text`; returns false if the document is
/// skipped. With DocumentKind::jsonl it is the string `field` of the line's object, with row the
/// unchanged row; otherwise CRLF line ends become newlines. In JSON, an unpaired surrogate is
/// invalid UTF-8, and non-finite numbers are accepted. Throws Error (data) with path, line and byte
/// for invalid UTF-8 (InvalidUtf8::error) and for a NUL byte in plain text. Throws Error (data)
/// with path and line for anything but a JSON object, a missing field, and a field that is neither
/// a string nor null.
bool document_text(RawDocument raw, const std::string& path, DocumentKind kind,
                   const std::string& field, InvalidUtf8 invalid, std::string* text,
                   TextCounts* counts);

/// Throws Error (data) if more than a tenth of `bytes`, those of all documents so far, is invalid
/// UTF-8 and `bytes` is at least 64 KiB. Such input is not damaged text but another format, for
/// which InvalidUtf8 is not meant.
void require_mostly_utf8(const TextCounts& counts, int64_t bytes);

}  // namespace bamtrain
