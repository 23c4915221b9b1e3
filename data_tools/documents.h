#pragma once
// Where documents begin and end in the text of an input.

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
  wikitext,    // from a WikiText title to the next: see is_wikitext_title
  jsonl,       // one string field of each line's JSON object
  row,         // one string column of each row of a parquet file, which is told by its first bytes
};

/// "line", "file", "blank-line", "wikitext", "jsonl": the names on the command line. A row is none:
/// what is parquet is read so.
const std::vector<std::string>& document_kind_names();
/// REQUIRES: one of document_kind_names().
DocumentKind document_kind_named(const std::string& name);

/// How an input is read. `format` ("txt", "jsonl" or empty: by the name, behind which .zst, .xz
/// or .gz may stand) and `kind` (empty: none given) are the command line's. A JSON lines input is
/// always read by lines; a text input needs a kind. Error (usage) where that leaves the kind open,
/// or text for standard input without a format.
DocumentKind document_kind_of(const std::string& path, const std::string& format,
                              std::optional<DocumentKind> kind);

/// A line that may begin a WikiText article: " = Title = ", exactly one "=" on either side. Such
/// lines also occur within articles (legends of tables, broken formulas). Where the first title of
/// an input stands between blank lines (or the input's start or end), all do, which finds the 600,
/// 60 and 60 articles of WikiText-2; where it does not, as in copies without blank lines, every
/// such line begins an article.
bool is_wikitext_title(std::string_view line);

/// No visible character: nothing but ASCII white space.
bool is_blank(std::string_view text);

/// What makes one document, as it stands in the input: unchecked UTF-8, and with `jsonl` the JSON.
struct RawDocument {
  std::string text;
  int64_t line = 0;    // its first line in the input, or its row, from 1
  int64_t offset = 0;  // of its first byte in the decompressed input; 0 of a row
};

/// The documents of one input of text, front to back.
///   line        without the newline; empty ones included. A carriage return ends a line too, alone
///               or before the newline
///   file        every byte
///   blank_line  the lines of a block joined by newlines, none at its end
///   wikitext    every byte from a title to the next one; before the first title, the text from the
///               first line that is not blank, if any
///   jsonl       a line without the newline; blank lines are passed over
class DocumentReader {
 public:
  /// No document may be longer than `max_bytes`. Errors: as TextReader.
  DocumentReader(const std::string& path, DocumentKind kind, int64_t max_bytes);

  /// False at the end. Error (data) past max_bytes, naming the line; and as TextReader::next.
  bool next(RawDocument* document);

  /// What may be other than it was meant in the documents so far, in a sentence for people; ""
  /// where nothing is: titles of WikiText inside of a document, or told without blank lines.
  std::string warning() const;

  const std::string& path() const { return lines_.path(); }
  int64_t taken() const { return lines_.taken(); }  // bytes of the input file, as it lies there

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
  std::string_view rest_;  // line: what is left of the line at hand
  int64_t rest_offset_ = 0;
  std::optional<Line> current_, following_;  // wikitext: the line to come, the one after it
  bool after_blank_ = true;                  // wikitext: the line before them is blank or the start
  bool blank_seen_ = false;                  // before the line to come
  bool at_title_ = false;                    // it is known for one
  std::optional<bool> titles_alone_;         // between blank lines; unknown before the first
  int64_t titles_ = 0;                       // lines that may be titles
  int64_t articles_ = 0;                     // documents that begin with one
};

}  // namespace bamtrain
