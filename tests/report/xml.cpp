#include "report/xml.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <stdexcept>

namespace bamtrain::testing {

namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Xml document() {
    Xml root = element();
    space();
    if (at_ != text_.size()) fail("nothing after the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::runtime_error("expected " + expected + " before: " + text_.substr(at_, 60));
  }
  char peek() const {
    if (at_ >= text_.size()) fail("more");
    return text_[at_];
  }
  bool take(const std::string& what) {
    if (text_.compare(at_, what.size(), what) != 0) return false;
    at_ += what.size();
    return true;
  }
  void need(const std::string& what) {
    if (!take(what)) fail(what);
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string word() {
    const size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-' || peek() == ':') {
      ++at_;
    }
    if (at_ == begin) fail("a name");
    return text_.substr(begin, at_ - begin);
  }
  std::string characters(const std::string& end) {
    std::string out;
    while (end.find(peek()) == std::string::npos) {
      const char c = peek();
      if (c == '<' || c == '>' || c == '"' || (c >= 0 && c < 0x20 && c != '\n' && c != '\t')) {
        fail("a character of text");
      }
      if (c != '&') {
        out += c;
        ++at_;
      } else if (take("&amp;")) {
        out += '&';
      } else if (take("&lt;")) {
        out += '<';
      } else if (take("&gt;")) {
        out += '>';
      } else if (take("&quot;")) {
        out += '"';
      } else if (take("&#39;")) {
        out += '\'';
      } else {
        fail("a reference");
      }
    }
    return out;
  }
  Xml element() {
    Xml out;
    need("<");
    out.name = word();
    for (space(); peek() != '>' && peek() != '/'; space()) {
      const std::string name = word();
      need("=\"");
      if (!out.attributes.emplace(name, characters("\"")).second) fail("an attribute once");
      need("\"");
      if (peek() != ' ' && peek() != '>' && peek() != '/') fail("a space between attributes");
    }
    if (take("/>")) return out;
    need(">");
    while (true) {
      out.text += characters("<");
      if (take("</")) break;
      out.children.push_back(element());
    }
    if (word() != out.name) fail("the end of " + out.name);
    need(">");
    return out;
  }

  const std::string& text_;
  size_t at_ = 0;
};

void collect(const Xml& in, const std::string& name, std::vector<const Xml*>& out) {
  for (const Xml& child : in.children) {
    if (child.name == name) out.push_back(&child);
    collect(child, name, out);
  }
}

}  // namespace

std::vector<const Xml*> Xml::all(const std::string& of) const {
  std::vector<const Xml*> out;
  collect(*this, of, out);
  return out;
}

std::vector<const Xml*> Xml::of_class(const std::string& of, const std::string& wanted) const {
  std::vector<const Xml*> out;
  for (const Xml* x : all(of)) {
    const auto it = x->attributes.find("class");
    std::istringstream words(it == x->attributes.end() ? "" : it->second);
    for (std::string w; words >> w;) {
      if (w == wanted) out.push_back(x);
    }
  }
  return out;
}

Xml parse_xml(const std::string& text) { return Reader(text).document(); }

std::vector<std::string> references_in(const std::string& html) {
  const std::string name_space = "http://www.w3.org/2000/svg";
  std::vector<std::string> out;
  for (const std::string outside : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    for (size_t at = html.find(outside); at != std::string::npos; at = html.find(outside, at + 1)) {
      const size_t end = at + name_space.size();
      const bool quoted = at > 0 && end < html.size() && html[at - 1] == html[end] &&
                          (html[end] == '"' || html[end] == '\'');
      if (quoted && html.compare(at, name_space.size(), name_space) == 0) continue;
      out.push_back(html.substr(at, 60));
    }
  }
  return out;
}

Xml body_of(const std::string& html) {
  const size_t begin = html.find("<body>"), end = html.find("<script>");
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("no body");
  return parse_xml(html.substr(begin, end - begin) + "</body>");
}

}  // namespace bamtrain::testing
