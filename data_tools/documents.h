#pragma once
// Splits the text of an input into documents.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data_tools/text_reader.h"

namespace bamtrain {

enum class DocumentKind {
  line,        // each line
  file,        // the whole input
  blank_line,  // a block of lines between lines without visible characters
  wikitext,    // from one WikiText title to the next: see is_wikitext_title
  jsonl,       // one string field of each line's JSON object
  row,         // one string column of each row of a parquet file, recognized by its first bytes
};

/// "line", "file", "blank-line", "wikitext", "jsonl": the names on the command line. row has no
/// name: parquet is always read that way.
const std::vector<std::string>& document_kind_names();
/// REQUIRES: one of document_kind_names().
DocumentKind document_kind_named(const std::string& name);

/// How to read an input, from the command line's `format` and `kind`. `format` is "txt", "jsonl" or
/// empty: by the name, which may end in .zst, .xz or .gz. `kind` is empty if not set. JSON lines
/// are always read line by line; text needs a kind. Throws Error (usage) if the kind remains open,
/// or for standard input without a format.
DocumentKind document_kind_of(const std::string& path, const std::string& format,
                              std::optional<DocumentKind> kind);

/// A line that may begin a WikiText article: " = Title = ", with exactly one "=" on either side.
/// Such lines also occur within articles (table legends, broken formulas). If the first title of an
/// input is between blank lines (or the input's start or end), only such titles count: this finds
/// the 600, 60 and 60 articles of WikiText-2. Otherwise, as in copies without blank lines, every
/// such line begins an article.
bool is_wikitext_title(std::string_view line);

/// Whether the text is only ASCII white space.
bool is_blank(std::string_view text);

/// One document as it is in the input: unchecked UTF-8; with `jsonl` the JSON line.
struct RawDocument {
  std::string text;
  int64_t line = 0;    // first line in the input, or row, from 1
  int64_t offset = 0;  // offset of its first byte in the decompressed input; 0 for a row
};

/// Iterates over the documents of one text input.
///   line        without the newline; empty ones included. A carriage return ends a line too, alone
///               or before the newline
///   file        every byte
///   blank_line  the lines of a block joined by newlines, none at its end
///   wikitext    every byte from a title to the next one; before the first title, the text from the
///               first non-blank line, if any
///   jsonl       a line without the newline; blank lines are skipped
class DocumentReader {
 public:
  /// `max_bytes`: limit of a document's size. Errors: as TextReader.
  DocumentReader(const std::string& path, DocumentKind kind, int64_t max_bytes);

  /// Returns false at the end. Throws Error (data) with the line for a document past max_bytes.
  /// Other errors: as TextReader::next.
  bool next(RawDocument* document);

  /// A sentence for the user about documents so far that may not be split as intended; "" if there
  /// is nothing to report. Cases: WikiText titles inside a document, or titles without blank lines.
  std::string warning() const;

  const std::string& path() const { return lines_.path(); }
  int64_t taken() const { return lines_.taken(); }  // bytes of the input file, as stored

 private:
  struct Line {
    std::string text;
    int64_t number = 0, offset = 0;
    bool newline = false;
  };
  bool next_line(RawDocument* document);
  bool next_block(RawDocument* document);
  bool next_article(RawDocument* document);
  bool is_title();
  void advance();
  void append(std::string_view text, RawDocument* document) const;

  TextReader lines_;
  DocumentKind kind_;
  int64_t max_bytes_;
  bool started_ = false;
  std::string_view rest_;  // line: rest of the current line
  int64_t rest_offset_ = 0;
  std::optional<Line> current_, following_;  // wikitext: the next line, and the one after it
  bool after_blank_ = true;                  // wikitext: previous line is blank, or none
  bool blank_seen_ = false;                  // a blank line came before the next line
  bool at_title_ = false;                    // the next line is known to be a title
  std::optional<bool> titles_alone_;         // titles are between blank lines; unknown at first
  int64_t titles_ = 0;                       // possible titles
  int64_t articles_ = 0;                     // documents that begin with a title
};

}  // namespace bamtrain
