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
  // 8-bit controls in UTF-8: a terminal may take U+009B for an escape sequence.
  CHECK(escaped("a\xC2\x80\xC2\x9B\xC2\xA0") == "a" + replacement + replacement + "\xC2\xA0");
  CHECK(escaped("\xFFx\xC3") == replacement + "x" + replacement);
  // U+FFFE, which makes an SVG file unreadable, and U+202E.
  CHECK(escaped("a\xEF\xBF\xBE"
                "b\xE2\x80\xAE") == "a" + replacement + "b" + replacement);
  CHECK(escaped("").empty());
}

TEST_CASE("a path becomes an address") {
  CHECK(url_path("../runs/a-1_b.c~/report.html") == "../runs/a-1_b.c~/report.html");
  CHECK(url_path("a b#c?d%e:f\"<&'\xC3\xA4") == "a%20b%23c%3Fd%25e%3Af%22%3C%26%27%C3%A4");
}

TEST_CASE("a page is one file that needs nothing else") {
  const std::string html = html_page("report", "<a>", "<p>b</p>\n");
  CHECK(html.find("<title>&lt;a&gt;</title>") != std::string::npos);
  CHECK(references_in(html).empty());
  const std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
  CHECK(references_in(html + svg).empty());
  CHECK(references_in(html + svg + "<img src=\"https://x\"/>").size() == 2);
  CHECK(references_in(svg + "<svg xmlns=\"http://www.w3.org/2000/svg/x\"/>").size() == 1);
  CHECK(body_of(html).all("p")[0]->text == "b");
}
