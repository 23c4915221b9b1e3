#include "data_tools/documents.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace bamtrain {

const std::vector<std::string>& document_kind_names() {
  static const std::vector<std::string> names = {"line", "file", "blank-line", "wikitext", "jsonl"};
  return names;
}

DocumentKind document_kind_named(const std::string& name) {
  const auto& names = document_kind_names();
  const auto it = std::find(names.begin(), names.end(), name);
  require(it != names.end(), "a name of a kind of document");
  return static_cast<DocumentKind>(it - names.begin());
}

DocumentKind document_kind_of(const std::string& path, const std::string& format,
                              std::optional<DocumentKind> kind) {
  std::string_view name = path;
  for (std::string_view suffix : {".zst", ".xz"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  const bool jsonl = !format.empty() ? format == "jsonl" : name.ends_with(".jsonl");
  const bool txt = !format.empty() ? format == "txt" : name.ends_with(".txt");
  if (jsonl || kind == DocumentKind::jsonl) {
    if (!format.empty() && !jsonl) {
      throw Error(ExitCode::usage, "--format", "jsonl with --document jsonl", format,
                  "drop one of the two");
    }
    return DocumentKind::jsonl;
  }
  if (!txt) {
    throw Error(ExitCode::usage, path, "a name in .txt or .jsonl (then perhaps .zst or .xz)",
                path == kStandardInput ? "standard input" : "another name",
                "say what it holds: --format txt or --format jsonl");
  }
  if (!kind) {
    throw Error(ExitCode::usage, path, "a kind of document for plain text", "no --document",
                "add --document line, file, blank-line or wikitext");
  }
  return *kind;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

bool is_wikitext_title(std::string_view line) {
  while (!line.empty() && is_blank(line.substr(0, 1))) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.substr(line.size() - 1))) line.remove_suffix(1);
  if (line.size() < 5 || !line.starts_with("= ") || !line.ends_with(" =")) return false;
  return !line.starts_with("= =") && !line.ends_with("= =");
}

DocumentReader::DocumentReader(const std::string& path, DocumentKind kind, int64_t max_bytes)
    : lines_(path, max_bytes), kind_(kind), max_bytes_(max_bytes) {}

bool DocumentReader::next(RawDocument* document) {
  *document = {};
  if (kind_ == DocumentKind::blank_line) return next_block(document);
  if (kind_ == DocumentKind::wikitext) return next_article(document);
  if (kind_ == DocumentKind::file) {
    if (std::exchange(started_, true)) return false;
    document->text = lines_.rest();
  } else {
    std::string_view line;
    do {
      if (!lines_.next(&line)) return false;
    } while (kind_ == DocumentKind::jsonl && is_blank(line));
    document->text = line;
  }
  document->line = lines_.line();
  document->offset = lines_.offset();
  return true;
}

void DocumentReader::append(std::string_view text, RawDocument* document) const {
  if (static_cast<int64_t>(document->text.size() + text.size()) > max_bytes_) {
    throw Error(ExitCode::data, path() + ":" + std::to_string(document->line),
                "a document of at most " + std::to_string(max_bytes_) + " bytes", "a longer one",
                "raise --max-document-bytes, or choose another --document");
  }
  document->text.append(text);
}

bool DocumentReader::next_block(RawDocument* document) {
  std::string_view line;
  do {
    if (!lines_.next(&line)) return false;
  } while (is_blank(line));
  document->line = lines_.line();
  document->offset = lines_.offset();
  append(line, document);
  while (lines_.next(&line) && !is_blank(line)) {
    append("\n", document);
    append(line, document);
  }
  return true;
}

/// Moves on by one line, to know the one before and the one after the line at hand.
void DocumentReader::advance() {
  if (current_) after_blank_ = is_blank(current_->text);
  current_ = std::move(following_);
  following_.reset();
  std::string_view text;
  if (lines_.next(&text)) {
    following_ = Line{std::string(text), lines_.line(), lines_.offset(), lines_.had_newline()};
  }
}

bool DocumentReader::next_article(RawDocument* document) {
  if (!std::exchange(started_, true)) {
    advance();
    advance();
  }
  bool inside = false;
  for (; current_; advance()) {
    const bool title = after_blank_ && is_wikitext_title(current_->text) &&
                       (!following_ || is_blank(following_->text));
    if (inside && title) return true;
    if (!inside && is_blank(current_->text)) continue;
    if (!std::exchange(inside, true)) {
      document->line = current_->number;
      document->offset = current_->offset;
    }
    append(current_->text, document);
    if (current_->newline) append("\n", document);
  }
  return inside;
}

}  // namespace bamtrain
