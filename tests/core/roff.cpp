#include "core/roff.h"

#include "catch.h"

using namespace bamtrain;

TEST_CASE("text prints as it is in troff") {
  CHECK(roff_text("plain words, 1 + 1") == "plain words, 1 + 1");
  CHECK(roff_text("--a-b") == "\\-\\-a\\-b");  // no hyphens, which cannot be copied
  CHECK(roff_text(".br") == "\\&.br");         // no request
  CHECK(roff_text("'br") == "\\(aqbr");
  CHECK(roff_text("C:\\n \"x\"") == "C:\\en \\(dqx\\(dq");
  CHECK(roff_text("`a` ^ ~") == "\\(gaa\\(ga \\(ha \\(ti");
  CHECK(roff_text("±1 é €") == "\\[u00B1]1 \\[u00E9] \\[u20AC]");
  CHECK(roff_bold("-x") == "\\fB\\-x\\fR");
  CHECK(roff_italic("X") == "\\fIX\\fR");
}

TEST_CASE("Markdown becomes sections of a manual page") {
  CHECK(roff_page("# Exit codes\n\nWhat to do,\nby `code` ([page](x.md)).\n\nMore.\n") ==
        ".SH \"EXIT CODES\"\n.PP\nWhat to do, by \\fBcode\\fR (page).\n.PP\nMore.\n");
  CHECK(roff_page("## Signals\n\n- one\n  line\n- `two`\n") ==
        ".SS \"Signals\"\n.IP \\(bu 2\none line\n.IP \\(bu 2\n\\fBtwo\\fR\n");
  CHECK(roff_page("Run:\n\n    a --b\n      .c\n\nEnd\n") ==
        ".PP\nRun:\n.PP\n.RS 4\n.EX\na \\-\\-b\n  .c\n.EE\n.RE\n" + std::string(kRoffLeft) +
            ".PP\nEnd\n");
  CHECK(roff_page("| code | meaning | what to do |\n|---|---|---|\n| 0 | success | |\n"
                  "| 3 | a key | read `this` |\n") ==
        ".TP\n\\fB0\\fR\nsuccess\n.TP\n\\fB3\\fR\na key; read \\fBthis\\fR\n");
  CHECK(roff_page("a `b and [c]\n") == ".PP\na \\(gab and [c]\n");
}
