#include "report/markup.h"

#include "catch.h"
#include "report/page.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("text cannot leave its place in markup") {
  CHECK(escaped("plain, \xC3\xA9 \xF0\x9F\x90\x99") == "plain, \xC3\xA9 \xF0\x9F\x90\x99");
  CHECK(escaped("<script>\"&'") == "&lt;script&gt;&quot;&amp;&#39;");
  CHECK(escaped("a\tb\nc") == "a\tb\nc");
  const std::string replacement = "\xEF\xBF\xBD";
  CHECK(escaped(std::string("a\0b\x1B[m\x7F", 7)) ==
        "a" + replacement + "b" + replacement + "[m" + replacement);
  CHECK(escaped("\xFFx\xC3") == replacement + "x" + replacement);
  CHECK(escaped("").empty());
}

TEST_CASE("a page is one file that needs nothing else") {
  const std::string html = html_page("<a>", "<p>b</p>\n");
  CHECK(html.find("<title>&lt;a&gt;</title>") != std::string::npos);
  for (const char* outside : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    INFO(outside);
    const size_t at = html.find(outside);
    // The name of a name space is no address.
    CHECK((at == std::string::npos || html.compare(at, 26, "http://www.w3.org/2000/svg") == 0));
  }
  CHECK(body_of(html).all("p")[0]->text == "b");
}
