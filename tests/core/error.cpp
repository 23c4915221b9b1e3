#include "core/error.h"

#include <cerrno>
#include <string>

#include "catch.h"
#include "core/faults.h"

namespace bamtrain {
namespace {

std::string text_of(const Error& e) { return e.what(); }

TEST_CASE("an error says its four parts, each once") {
  const Error e(ExitCode::data, "f.bin", "3 tokens", "2", "fetch it again");
  CHECK(text_of(e) == "f.bin: expected 3 tokens, found 2; fetch it again");
  CHECK(e.code() == ExitCode::data);
  CHECK(e.where() == "f.bin");
  CHECK(e.remedy() == "fetch it again");
  CHECK(text_of(Error(ExitCode::data, "f", "a", "b", "")) == "f: expected a, found b");
  CHECK(text_of(Error::fault(ExitCode::io, "f", "no such file", "check the name")) ==
        "f: no such file; check the name");
  CHECK(text_of(Error::fault(ExitCode::usage, "", "unknown command 'x'", "")) ==
        "unknown command 'x'");
}

TEST_CASE("who catches an error can say more, or say it of another place") {
  const Error e(ExitCode::io, "f", "a", "b", "do c");
  CHECK(text_of(e.at("g")) == "g: expected a, found b; do c");
  CHECK(text_of(e.or_else("do d")) == "f: expected a, found b; do c, or do d");
  CHECK(text_of(e.and_then("do d")) == "f: expected a, found b; do c, and do d");
  CHECK(text_of(e.as(ExitCode::usage, "--g", "do d")) == "--g: expected a, found b; do d");
  CHECK(e.as(ExitCode::usage, "--g").code() == ExitCode::usage);
  CHECK(text_of(e.as(ExitCode::usage, "--g")) == "--g: expected a, found b; do c");
  CHECK(text_of(e.with("and g too")) == "f: expected a, found b; do c\nand g too");
  CHECK(text_of(e.reworded([](const std::string& part) { return "<" + part + ">"; })) ==
        "<f>: <expected a, found b>; <do c>");
  // One without a remedy.
  const Error bare = Error::fault(ExitCode::io, "f", "gone", "");
  CHECK(text_of(bare.or_else("do d")) == "f: gone; do d");
  CHECK(text_of(bare.with("and g too")) == "f: gone\nand g too");
  CHECK(text_of(bare.and_then("do d")) == "f: gone; do d");
}

TEST_CASE("the frequent faults say in one phrase what was expected and found") {
  CHECK(text_of(no_such_file(ExitCode::io, "run.json")) ==
        "run.json: no such file; check the name");
  CHECK(text_of(system_error(ExitCode::io, "f", "read", ENOENT, "look")) ==
        "f: no such file; look");
  CHECK(text_of(system_error(ExitCode::io, "f", "read", EACCES, "look")) ==
        "f: cannot read: Permission denied; look");
  CHECK(text_of(system_error(ExitCode::io, "f", "create", ENOENT, "look")) ==
        "f: cannot create: No such file or directory; look");
  CHECK(text_of(missing(ExitCode::config, "f: k", "an integer", "add it")) ==
        "f: k: missing (an integer); add it");
  CHECK(text_of(missing(ExitCode::config, "f: k", "", "add it")) == "f: k: missing; add it");
}

TEST_CASE("an unknown name is answered with the nearest, or with all") {
  const std::vector<std::string> few = {"red", "green", "blue"};
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", "gren", few)) ==
        "--c: unknown colour 'gren' (known: red, green, blue); did you mean green?");
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", "7", few)) ==
        "--c: unknown colour '7'; choose one of red, green, blue");
  std::vector<std::string> many = few;
  while (many.size() < 20) many.push_back("colour-" + std::to_string(many.size()));
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", "gren", many)) ==
        "--c: unknown colour 'gren'; did you mean green?");
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", "gren", few, "see help")) ==
        "--c: unknown colour 'gren'; did you mean green?");
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", "7", few, "see help")) ==
        "--c: unknown colour '7'; see help");
  const std::string endless(300, 'x');
  CHECK(text_of(unknown_name(ExitCode::usage, "--c", "colour", endless, few)).size() < 150);
}

TEST_CASE("what was found cannot reach a terminal as a control, nor cut the message") {
  const std::string replacement = "\xEF\xBF\xBD";
  const std::string found("a\0b\x1B]0;t\x07\x7F\xC2\x9B\xFF\t\n", 15);
  const Error e(ExitCode::io, "f\x1B", "text\x08", found, "r\x1B");
  CHECK(text_of(e) == "f" + replacement + ": expected text" + replacement + ", found a" +
                          replacement + "b" + replacement + "]0;t" + replacement + replacement +
                          replacement + replacement + "\t\n; r" + replacement);
  CHECK(e.where() == "f" + replacement);
  CHECK(text_of(e.at("g\x1B")).starts_with("g" + replacement + ": expected"));
  CHECK(text_of(Error::fault(ExitCode::io, "f\x1B", "gone\x08", "r\x1B")) ==
        "f" + replacement + ": gone" + replacement + "; r" + replacement);
  CHECK(text_of(Error(ExitCode::io, "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\x99", "")) ==
        "\xC3\xA9: expected \xE2\x82\xAC, found \xF0\x9F\x90\x99");
}

}  // namespace
}  // namespace bamtrain
