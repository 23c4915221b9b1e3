// Damaged texts are read or refused, whatever the damage.

#include "fixture.h"

TEST_CASE("a configuration cut off at any byte is an error") {
  for (size_t length = 0; length < kValid.size(); ++length) {
    INFO("cut after " << length << " bytes");
    const std::string what = message(kValid.substr(0, length));
    CHECK(what.find("run.json:") == 0);
    const size_t remedy = what.find("; ");
    CHECK((remedy != std::string::npos && remedy + 2 < what.size()));
  }
  CHECK(message(kValid).empty());
}

TEST_CASE("a configuration with any byte replaced is read or refused, never anything else") {
  int refused = 0;
  for (size_t at = 0; at < kValid.size(); ++at) {
    for (const char c : {'\0', '"', '{', '}', ',', '9', '\xff', 'e', '-', '\\'}) {
      std::string text = kValid;
      text[at] = c;
      refused += !message(text).empty();
    }
  }
  CHECK(refused > static_cast<int>(kValid.size()) * 5);
}
