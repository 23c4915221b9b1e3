#include "core/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "core/abbreviate.h"
#include "core/line_reader.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr size_t kDeepest = 100;
constexpr size_t kMostValues = size_t{1} << 22;

/// "where:line:column" of the byte before `end`.
std::string place(std::string_view text, size_t end, const JsonSource& source) {
  const size_t at = std::min(end, text.size());
  const size_t before = at > 0 ? at - 1 : 0;
  const auto begin = text.begin();
  const auto line = source.line + std::count(begin, begin + static_cast<ptrdiff_t>(before), '\n');
  const size_t newline = before > 0 ? text.rfind('\n', before - 1) : std::string_view::npos;
  const size_t column = newline == std::string_view::npos ? before + 1 : before - newline;
  return source.where + ":" + std::to_string(line) + ":" + std::to_string(column);
}

/// Counts how far the lexer has read, for the handler below.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

/// The part of nlohmann's message after its own prefix and position.
std::string reason(const std::string& what) {
  size_t start = 0;
  if (!what.empty() && what[0] == '[') start = what.find("] ");
  start = start == std::string::npos ? 0 : start == 0 ? 0 : start + 2;
  const size_t column = what.find("column ", start);
  if (what.compare(start, 11, "parse error") == 0 && column != std::string::npos) {
    const size_t colon = what.find(": ", column);
    if (colon != std::string::npos) start = colon + 2;
  }
  std::string text = what.substr(start);  // "unexpected '}'; expected string literal"
  for (size_t at = 0; (at = text.find("; expected ", at)) != std::string::npos;) text[at] = ',';
  return abbreviate(text, 240);
}

/// Builds the value from the parser's events.
class Builder {
 public:
  Builder(std::string_view text, const JsonSource& source) : text_(text), source_(source) {}

  size_t* count() { return &count_; }
  json take() { return std::move(root_); }

  /// Refuses the byte before `end`.
  [[noreturn]] void refuse(size_t end, const std::string& fault, const std::string& remedy) const {
    throw Error::fault(source_.code, place(text_, end, source_), fault,
                       source_.remedy.empty() ? remedy : source_.remedy);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool v) { return add(v); }
  bool number_integer(json::number_integer_t v) { return add(v); }
  bool number_unsigned(json::number_unsigned_t v) { return add(v); }
  bool number_float(json::number_float_t v, const std::string&) { return add(v); }
  bool string(std::string& v) { return add(std::move(v)); }
  bool binary(json::binary_t&) { return false; }  // never in JSON text

  bool start_object(size_t) { return open(json::object()); }
  bool start_array(size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    if (level.value.contains(name)) {
      std::string path;
      for (const Level& l : levels_) path += l.name.empty() ? "" : l.name + ".";
      refuse(key_start() + 1, "duplicate key \"" + abbreviate(path + name) + "\"",
             "remove one of the two");
    }
    level.key = name;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& e) {
    if (levels_.empty() && complete_) {
      refuse(position, "text after the JSON value",
             "remove what follows, or look for a bracket closed too early");
    }
    if (dynamic_cast<const json::out_of_range*>(&e) != nullptr) {
      refuse(position, "number out of range (at most 1.8e308): " + reason(e.what()),
             "choose a smaller number");
    }
    refuse(position, "invalid JSON: " + reason(e.what()), remedy(std::min(position, text_.size())));
  }

 private:
  struct Level {
    json value;
    std::string key;   // of the member being read
    std::string name;  // of this value in its parent
  };

  bool open(json value) {
    if (levels_.size() >= kDeepest) {
      refuse(count_, "nested deeper than " + std::to_string(kDeepest) + " levels",
             "nest less deeply");
    }
    levels_.push_back({std::move(value), "", levels_.empty() ? "" : levels_.back().key});
    return true;
  }

  bool close() {
    json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }

  bool add(json value) {
    if (++values_ > kMostValues) {
      refuse(count_, "more than " + std::to_string(kMostValues) + " values",
             "split it into several files");
    }
    if (levels_.empty()) {
      root_ = std::move(value);
      complete_ = true;
    } else if (levels_.back().value.is_array()) {
      levels_.back().value.push_back(std::move(value));
    } else {
      levels_.back().value[levels_.back().key] = std::move(value);
    }
    return true;
  }

  /// The start of the string that ends at count_: the parser reports a key only after reading its
  /// closing quote.
  size_t key_start() const {
    size_t i = count_ - 1;
    while (i > 0) {
      --i;
      if (text_[i] != '"') continue;
      size_t slashes = 0;
      while (slashes < i && text_[i - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) break;
    }
    return i;
  }

  std::string remedy(size_t end) const {
    if (end == 0) return "the file is empty: write a configuration";
    const size_t begin = text_.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && begin + 1 >= end && text_[begin] != '/' &&
        text_[begin] != '{' && text_[begin] != '[') {
      return "name a file in JSON, which begins with { and has no comments";
    }
    const char c = text_[end - 1];
    if (c == '/' || c == '#') return "remove the comment: JSON has none";
    if (c == '}' || c == ']') {
      const size_t last =
          end < 2 ? std::string_view::npos : text_.find_last_not_of(" \t\r\n", end - 2);
      if (last != std::string_view::npos && text_[last] == ',') return "remove the comma before it";
    }
    if (text_.find_first_not_of(" \t\r\n", end) == std::string_view::npos) {
      return "complete the text: it seems to be cut off";
    }
    return "correct the text at or just before this place";
  }

  const std::string_view text_;
  const JsonSource& source_;
  size_t count_ = 0, values_ = 0;
  bool complete_ = false;
  std::vector<Level> levels_;
  json root_;
};

void add_leaves(const json& value, const std::string& path, std::map<std::string, json>& out) {
  if (!value.is_object()) {
    out[path] = value;
    return;
  }
  for (const auto& [name, member] : value.items()) {
    add_leaves(member, path.empty() ? name : path + "." + name, out);
  }
}

}  // namespace

json parse_json(std::string_view text, const JsonSource& source) {
  Builder builder(text, source);
  // nlohmann's lexer treats a NUL as the end of the input and would ignore what follows. It would
  // also skip a byte order mark, which other parsers read as text.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    builder.refuse(nul + 1, "NUL byte", "remove it: the file seems to be damaged, or is not UTF-8");
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    builder.refuse(1, "byte order mark", "save the file as UTF-8 without one");
  }
  const CountingIterator begin(text.data(), builder.count());
  const CountingIterator end(text.data() + text.size(), builder.count());
  if (!json::sax_parse(begin, end, &builder)) {
    throw Error::fault(source.code, source.where, "invalid JSON", "correct the text");
  }
  return builder.take();
}

json parse_json_line(std::string_view line, const JsonSource& source) {
  const std::string where = source.where + ":" + std::to_string(source.line);
  if (line.size() > LineReader::kMost) {
    throw Error::fault(source.code, where,
                       "line longer than " + std::to_string(LineReader::kMost) + " bytes",
                       source.remedy);
  }
  json value = parse_json(line, source);
  if (!value.is_object()) {
    throw Error(source.code, where, "a JSON object", abbreviate(value.dump()), source.remedy);
  }
  return value;
}

const json* find_value(const json& document, const std::string& path) {
  const json* at = &document;
  std::istringstream names(path);
  std::string name;
  while (std::getline(names, name, '.')) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(name);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

std::map<std::string, json> leaves_of(const json& document) {
  std::map<std::string, json> out;
  add_leaves(document, "", out);
  return out;
}

std::string text_at(const json& document, const std::string& path) {
  const json* value = find_value(document, path);
  return value != nullptr ? abbreviate(value->dump()) : "unset";
}

}  // namespace bamtrain
