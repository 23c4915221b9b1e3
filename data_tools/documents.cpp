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
  for (std::string_view suffix : {".zst", ".xz", ".gz"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  const bool jsonl = !format.empty() ? format == "jsonl" : name.ends_with(".jsonl");
  const bool txt = !format.empty() ? format == "txt" : name.ends_with(".txt");
  if (jsonl || kind == DocumentKind::jsonl) {
    if (!format.empty() && !jsonl) {
      throw Error(ExitCode::usage, "--format", "jsonl with --document jsonl", format,
                  "remove one of the two");
    }
    return DocumentKind::jsonl;
  }
  if (!txt) {
    throw Error::fault(ExitCode::usage, path,
                       path == kStandardInput
                           ? "unknown format of standard input"
                           : "unknown format: the name does not end with .txt or .jsonl, "
                             "compressed or not (.zst, .xz, .gz)",
                       "give --format txt or --format jsonl");
  }
  if (!kind) {
    throw Error::fault(ExitCode::usage, path, "plain text needs --document",
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

namespace {

constexpr int64_t kManyTitles = 3;

int64_t count_titles(std::string_view text) {
  int64_t titles = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    titles += is_wikitext_title(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return titles;
}

}  // namespace

DocumentReader::DocumentReader(const std::string& path, DocumentKind kind, int64_t max_bytes)
    : lines_(path, max_bytes), kind_(kind), max_bytes_(max_bytes) {}

bool DocumentReader::next(RawDocument* document) {
  *document = {};
  if (kind_ == DocumentKind::line) return next_line(document);
  if (kind_ == DocumentKind::blank_line) return next_block(document);
  if (kind_ == DocumentKind::wikitext) return next_article(document);
  if (kind_ == DocumentKind::file) {
    if (std::exchange(started_, true)) return false;
    document->text = lines_.rest();
    titles_ = count_titles(document->text);
  } else {
    std::string_view line;
    do {
      if (!lines_.next(&line)) return false;
    } while (is_blank(line));
    document->text = line;
  }
  document->line = lines_.line();
  document->offset = lines_.offset();
  return true;
}

/// The source's lines end in newlines; here, carriage returns split them further.
bool DocumentReader::next_line(RawDocument* document) {
  if (rest_.empty()) {
    if (!lines_.next(&rest_)) return false;
    document->offset = lines_.offset();
  } else {
    document->offset = rest_offset_;
  }
  document->line = lines_.line();
  const size_t end = std::min(rest_.find('\r'), rest_.size());
  document->text = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  rest_offset_ = document->offset + static_cast<int64_t>(end) + 1;
  return true;
}

void DocumentReader::append(std::string_view text, RawDocument* document) const {
  if (static_cast<int64_t>(document->text.size() + text.size()) > max_bytes_) {
    throw Error::fault(ExitCode::data, path() + ":" + std::to_string(document->line),
                       "document longer than " + std::to_string(max_bytes_) + " bytes",
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

/// Advances by one line; keeps facts about the previous and the following line.
void DocumentReader::advance() {
  if (current_) after_blank_ = is_blank(current_->text);
  blank_seen_ |= current_ && after_blank_;
  current_ = std::move(following_);
  following_.reset();
  std::string_view text;
  if (lines_.next(&text)) {
    following_ = Line{std::string(text), lines_.line(), lines_.offset(), lines_.had_newline()};
  }
}

/// Whether the current line begins an article. The first title decides whether all are between
/// blank lines. A line of its form directly after text is such a first title only if no line has
/// been blank so far.
bool DocumentReader::is_title() {
  if (!is_wikitext_title(current_->text)) return false;
  ++titles_;
  const bool alone = after_blank_ && (!following_ || is_blank(following_->text));
  if (!titles_alone_ && (after_blank_ || !blank_seen_)) titles_alone_ = alone;
  return titles_alone_ && (alone || !*titles_alone_);
}

bool DocumentReader::next_article(RawDocument* document) {
  if (!std::exchange(started_, true)) {
    advance();
    advance();
  }
  bool inside = false;
  for (; current_; advance()) {
    const bool title = std::exchange(at_title_, false) || is_title();
    if (inside && title) {
      at_title_ = true;
      return true;
    }
    if (!inside && is_blank(current_->text)) continue;
    articles_ += title;
    if (!std::exchange(inside, true)) {
      document->line = current_->number;
      document->offset = current_->offset;
    }
    append(current_->text, document);
    if (current_->newline) append("\n", document);
  }
  return inside;
}

std::string DocumentReader::warning() const {
  constexpr const char* kForm = "of the form of a WikiText title, \" = Title = \"";
  if (kind_ == DocumentKind::file && titles_ >= kManyTitles) {
    return path() + ": one document, with " + std::to_string(titles_) + " lines " + kForm +
           "; --document wikitext makes one of each article";
  }
  if (titles_ >= kManyTitles && titles_ > 2 * articles_) {
    return path() + ": " + std::to_string(titles_) + " lines " + kForm + ", of which " +
           std::to_string(articles_) + " stand between blank lines and begin a document";
  }
  if (articles_ > 0 && !*titles_alone_) {
    return path() + ": titles do not stand between blank lines: each of the " +
           std::to_string(articles_) + " lines " + kForm + " begins a document";
  }
  return "";
}

}  // namespace bamtrain
