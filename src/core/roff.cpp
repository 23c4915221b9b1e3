#include "core/roff.h"

#include <fmt/format.h>

#include <cctype>
#include <sstream>
#include <vector>

#include "core/utf8.h"

namespace bamtrain {

namespace {

/// One line's code spans and links.
std::string roff_spans(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t mark = std::min(text.find_first_of("`[", at), text.size());
    if (mark > at) out += roff_text(text.substr(at, mark - at));
    if (mark == text.size()) break;
    const size_t code_end = text.find('`', mark + 1);
    const size_t link_middle = text.find("](", mark), link_end = text.find(')', link_middle);
    if (text[mark] == '`' && code_end != text.npos) {
      out += roff_bold(text.substr(mark + 1, code_end - mark - 1));
      at = code_end + 1;
    } else if (text[mark] == '[' && link_end != text.npos) {
      out += roff_spans(text.substr(mark + 1, link_middle - mark - 1));
      at = link_end + 1;
    } else {
      out += roff_text(text.substr(mark, 1));
      at = mark + 1;
    }
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// "| a | b |" to {"a", "b"}.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t begin = 1, end; (end = line.find('|', begin)) != line.npos; begin = end + 1) {
    out.push_back(trimmed(line.substr(begin, end - begin)));
  }
  return out;
}

class Page {
 public:
  void line(std::string_view line) {
    const bool code = line.starts_with("    ") && paragraph_.empty();
    const bool row = line.starts_with('|');
    if (code != in_code_) switch_code(code);
    if (!row) rows_ = 0;
    if (code) {
      out_ += roff_text(line.substr(4)) + "\n";
    } else if (row) {
      if (++rows_ > 2) add_row(cells_of(line));  // after the header and its line
    } else if (line.empty()) {
      close_paragraph();
    } else if (line.starts_with('#')) {
      const size_t level = line.find(' ');
      out_ += level == 1 ? ".SH \"" + capitals(line.substr(2)) + "\"\n"
                         : ".SS \"" + roff_text(line.substr(level + 1)) + "\"\n";
    } else if (line.starts_with("- ")) {
      close_paragraph();
      lead_ = ".IP \\(bu 2\n";
      paragraph_ = line.substr(2);
    } else {
      paragraph_ += paragraph_.empty() ? "" : " ";
      paragraph_ += trimmed(line);
    }
  }
  std::string take() {
    if (in_code_) switch_code(false);
    close_paragraph();
    return std::move(out_);
  }

 private:
  static std::string capitals(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return roff_text(out);
  }
  void close_paragraph() {
    if (!paragraph_.empty()) out_ += lead_ + roff_spans(paragraph_) + "\n";
    paragraph_.clear();
    lead_ = ".PP\n";
  }
  void switch_code(bool on) {
    out_ += on ? std::string(".PP\n.RS 4\n.EX\n") : std::string(".EE\n.RE\n") + kRoffLeft;
    in_code_ = on;
  }
  void add_row(const std::vector<std::string_view>& cells) {
    std::string text;
    for (size_t i = 1; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      text += text.empty() ? "" : "; ";
      text += cells[i];
    }
    out_ += ".TP\n\\fB" + roff_spans(cells.at(0)) + "\\fR\n" + roff_spans(text) + "\n";
  }

  std::string out_, paragraph_, lead_ = ".PP\n";
  bool in_code_ = false;
  int rows_ = 0;  // of the table so far
};

}  // namespace

std::string roff_text(std::string_view text) {
  std::string out = text.starts_with('.') ? "\\&" : "";
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = utf8_character_at(text, at);
    const char byte = text[at];
    at += c.bytes;
    switch (c.code) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c.code < 0x80 ? std::string(1, byte) : fmt::format("\\[u{:04X}]", c.code);
    }
  }
  return out;
}

std::string roff_bold(std::string_view text) { return "\\fB" + roff_text(text) + "\\fR"; }
std::string roff_italic(std::string_view text) { return "\\fI" + roff_text(text) + "\\fR"; }

std::string roff_verbatim(std::string_view text) {
  std::string out = ".PP\n.EX\n";
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) out += roff_text(line) + "\n";
  return out + ".EE\n" + kRoffLeft;
}

std::string roff_page(std::string_view markdown) {
  Page page;
  std::istringstream lines{std::string(markdown)};
  for (std::string line; std::getline(lines, line);) page.line(line);
  return page.take();
}

}  // namespace bamtrain
