#include "core/markdown.h"

#include "catch.h"

using namespace bamtrain;

// CommonMark 0.31, section 2.4: a backslash before ASCII punctuation makes it literal text.
TEST_CASE("text cannot leave its line or cell of Markdown") {
  CHECK(markdown_text("rope, base 100 (0.5)") == "rope, base 100 (0.5)");
  CHECK(markdown_text("exact_match \xC3\xA9") == "exact_match \xC3\xA9");
  CHECK(markdown_text("<img src=x onerror=alert(1)>") == "\\<img src=x onerror=alert(1)>");
  CHECK(markdown_text("&lt;b>") == "\\&lt;b>");
  CHECK(markdown_text("a|b`c`*d*[e](javascript:f)") == "a\\|b\\`c\\`\\*d\\*\\[e](javascript:f)");
  CHECK(markdown_text("\\<b>") == "\\\\\\<b>");
  CHECK(markdown_text("a\n# b\tc") == "a # b c");
  CHECK(markdown_text("a\xE2\x80\xAE\x1B[1m\xFF") ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD\\[1m\xEF\xBF\xBD");  // U+202E
  CHECK(markdown_text("").empty());
}
