#include "prompts/haystack.h"

#include "core/error.h"
#include "core/text_file.h"
#include "core/utf8.h"

namespace bamtrain {

namespace {

constexpr const char* kWhite = " \t\n\v\f\r";
constexpr int64_t kMostHaystackBytes = int64_t{256} << 20;

}  // namespace

Haystack hide(const std::vector<std::string>& units, const std::vector<Needle>& needles,
              char separator) {
  Haystack out;
  size_t next = 0;
  bool first = true;
  const auto append = [&](const std::string& text) {
    if (!first) out.text += separator;
    first = false;
    out.text += text;
  };
  for (size_t unit = 0; unit <= units.size(); ++unit) {
    for (; next < needles.size() && needles[next].before == static_cast<int64_t>(unit); ++next) {
      append(needles[next].text);
      const size_t size = needles[next].text.size();
      out.needles.push_back({out.text.size() - size, size, needles[next].asked});
    }
    if (unit < units.size()) append(units[unit]);
  }
  require(next == needles.size(), "needles in the order of their places");
  return out;
}

HaystackText HaystackText::read(const std::string& path) {
  const std::string text =
      open_text_file(path, "check the path and its permissions").text(kMostHaystackBytes);
  if (const size_t at = first_invalid_utf8(text); at != std::string::npos) {
    throw Error::fault(ExitCode::data, path, "not valid UTF-8 at byte " + std::to_string(at),
                       "convert it to UTF-8");
  }
  if (text.find_first_not_of(kWhite) == std::string::npos) {
    throw Error::fault(ExitCode::data, path, "no words for a haystack", "name another file");
  }
  return HaystackText(text);
}

HaystackText::HaystackText(const std::string& text) {
  for (size_t at = text.find_first_not_of(kWhite); at != std::string::npos;) {
    const size_t end = text.find_first_of(kWhite, at);
    words_.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kWhite, end);
  }
  require(!words_.empty(), "words for a haystack");
}

std::string HaystackText::first(int64_t count) const {
  require(count >= 1, "a word at least");
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += words_[static_cast<size_t>(i % size())];
  }
  return text;
}

}  // namespace bamtrain
