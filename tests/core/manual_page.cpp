#include "core/manual_page.h"

#include <CLI/CLI.hpp>

#include "catch.h"
#include "core/help_format.h"
#include "core/option_value.h"
#include "core/roff.h"

using namespace bamtrain;

TEST_CASE("a manual page has the program, its commands and further sections") {
  CLI::App app("shows things", "prog");
  set_help_format(app);
  app.require_subcommand(1);
  std::string file, kind;
  CLI::App* show = app.add_subcommand("show", "show one");
  take_words(show->add_option("--kind", kind, "its kind"), {"a", "b"})->group("Input");
  show->add_option("FILE", file, "what to show")->required();
  show->footer("Examples:\n  prog show x\n");
  app.footer("Prose of\ntwo lines.\n");
  const std::string left = kRoffLeft;
  CHECK(manual_page(app, "1.2-3", "# More\n\nText.\n") ==
        ".TH PROG 1 \"\" \"prog 1.2\\-3\" \"User Commands\"\n" + left +
            ".SH \"NAME\"\nprog \\- shows things\n"
            ".SH \"SYNOPSIS\"\n\\fBprog\\fR COMMAND [OPTIONS]\n"
            ".SH \"OPTIONS\"\n.TP\n\\fB\\-h, \\-\\-help\\fR\nprint this help\n"
            ".SH \"COMMANDS\"\n"
            ".SS \"prog show\"\nshow one.\n.PP\n\\fBprog show\\fR [OPTIONS] FILE\n"
            ".TP\n\\fIFILE\\fR\nwhat to show\n"
            ".PP\n\\fBInput:\\fR\n.TP\n\\fB\\-\\-kind\\fR\\fI a|b\\fR\nits kind\n"
            ".PP\n\\fBOther options:\\fR\n.TP\n\\fB\\-h, \\-\\-help\\fR\nprint this help\n"
            ".PP\n\\fBExamples:\\fR\n.PP\n.EX\n  prog show x\n.EE\n" +
            left +
            ".SH \"DESCRIPTION\"\n.PP\nProse of two lines.\n"
            ".SH \"MORE\"\n.PP\nText.\n");
}
