// Texts, compared with results of Python's str methods, worked out by hand and with python3.

#include "prompts/python_text.h"

#include "catch.h"

using namespace bamtrain;

TEST_CASE("white space is what str.isspace says") {
  // "".join(c for c in map(chr, range(0x110000)) if c.isspace())
  const std::string all =
      "\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
      "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";
  CHECK(without_space_around(all).empty());
  CHECK(without_space_behind(all).empty());
  CHECK(without_space_around(all + "a" + all + "é" + all) == "a" + all + "é");
  CHECK(without_space_behind(all + "a" + all) == all + "a");
  for (const char* no_space : {"\u200b", "\ufeff", "\u180e", "\x1b", "\u2060", "_"}) {
    CHECK(without_space_around(no_space) == no_space);
  }
  CHECK(without_space_around("").empty());
}

TEST_CASE("the first letter becomes a title's, the others small") {
  CHECK(capitalized("").empty());
  CHECK(capitalized("he GOES to New York") == "He goes to new york");
  CHECK(capitalized(" He") == " he");
  CHECK(capitalized("éTÉ ÜBER") == "Été über");
  CHECK(capitalized("ǆUNGLA") == "ǅungla");  // a letter with its own title case
  CHECK(capitalized("1ST [Title]") == "1st [title]");
  CHECK(capitalized("ЖИВИ") == "Живи");
}

TEST_CASE("parts are replaced from left to right") {
  CHECK(replaced("a   b    c", "  ", " ") == "a  b  c");
  CHECK(replaced("x [title] [title]y", " [title]", ". ") == "x. . y");
  CHECK(replaced("aaa", "aa", "b") == "ba");
  CHECK(replaced("abc", "x", "y") == "abc");
  CHECK(replaced("", "x", "y").empty());
}

TEST_CASE("a text is as long as it has code points") {
  CHECK(characters_of("") == 0);
  CHECK(characters_of("abc") == 3);
  CHECK(characters_of("Öl 油 😀") == 6);
  CHECK(characters_of("e\u0301") == 2);
}
