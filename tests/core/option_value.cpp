#include "core/option_value.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>

#include "catch.h"
#include "core/error.h"

using namespace bamtrain;

namespace {

/// The value of an option after `--option TEXT`, or the message if it refuses the text.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string message;
};

template <class T>
Parsed<T> parsed(const std::string& text, const std::function<void(CLI::Option*)>& take) {
  CLI::App app;
  Parsed<T> out;
  take(app.add_option("--option", out.value, "an option"));
  std::vector<std::string> reversed = {text, "--option"};
  try {
    app.parse(reversed);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::usage);
    CHECK(e.where() == "--option");
    out.message = e.what();
  }
  return out;
}

enum class Colour { red, green = 7 };

}  // namespace

TEST_CASE("an integer is read whole and in its range, or refused") {
  const auto read = [](const std::string& text) {
    return parsed<int64_t>(text, [](CLI::Option* o) { take_integers(o, -3, 1 << 20); });
  };
  CHECK(read("0").value == 0);
  CHECK(read("-3").value == -3);
  CHECK(read("1048576").value == 1 << 20);
  CHECK(read("010").value == 10);  // not octal
  for (const char* text : {"", " ", "-4", "1048577", "99999999999999999999999", "1e3", "0x10",
                           "1.0", "+1", "3 ", "three", "18446744073709551615"}) {
    const auto refused = read(text);
    INFO(text << ": " << refused.message);
    CHECK_FALSE(refused.message.empty());
    CHECK(refused.message.find("expected an integer from -3 to 1048576, found ") !=
          std::string::npos);
  }
  CHECK(read("").message.find("found an empty text; write a whole number") != std::string::npos);
  CHECK(read("1e3").message.find("found 1e3; write a whole number") != std::string::npos);
  CHECK(read("99999999999999999999").message.find("found 99999999999999999999") !=
        std::string::npos);
  const auto any = parsed<uint64_t>("9223372036854775807",
                                    [](CLI::Option* o) { take_integers(o, 0, INT64_MAX); });
  CHECK(any.value == uint64_t{INT64_MAX});
}

TEST_CASE("every integer of a list is read") {
  CLI::App app;
  std::vector<int64_t> values;
  take_integers(app.add_option("--option", values, "a list")->delimiter(','), 1, 9);
  std::vector<std::string> good = {"3,04,5", "--option"};
  app.parse(good);
  CHECK(values == std::vector<int64_t>{3, 4, 5});
  std::vector<std::string> bad = {"3,0", "--option"};
  CHECK_THROWS_AS(app.parse(bad), Error);
}

TEST_CASE("a number is read whole and is finite, or refused") {
  const auto read = [](const std::string& text) {
    return parsed<double>(text, [](CLI::Option* o) {
      take_numbers(o, "a number above 0", [](double x) { return x > 0; });
    });
  };
  CHECK(read("0.1").value == 0.1);
  CHECK(read(".5").value == 0.5);
  CHECK(read("1e-9").value == 1e-9);
  for (const char* text : {"", "0", "-1", "nan", "inf", "1e999", "0.5x", "x", "0x1p3"}) {
    const auto refused = read(text);
    INFO(text);
    CHECK(refused.message.find("--option: expected a number above 0, found ") == 0);
  }
}

TEST_CASE("a number of bytes has a unit or none") {
  const auto read = [](const std::string& text) {
    return parsed<int64_t>(text, [](CLI::Option* o) { take_bytes(o); });
  };
  CHECK(read("500").value == 500);
  CHECK(read("500B").value == 500);
  CHECK(read("30kB").value == 30'000);
  CHECK(read("500MB").value == 500'000'000);
  CHECK(read("2GiB").value == int64_t{2} << 30);
  CHECK(read("2gib").value == int64_t{2} << 30);
  CHECK(read("3T").value == 3'000'000'000'000);
  for (const char* text :
       {"", "0", "-5", "GB", "5 G", "1.5GB", "5X", "5BB", "9300000000GB", "99999999999999999999"}) {
    INFO(text);
    CHECK(read(text).message.find("--option: expected a number of bytes above 0") == 0);
  }
}

TEST_CASE("a word must be one of those listed; an enumerator's number is refused") {
  const std::vector<std::pair<std::string, Colour>> names = {{"red", Colour::red},
                                                             {"green", Colour::green}};
  const auto read = [&](const std::string& text) {
    return parsed<Colour>(text, [&](CLI::Option* o) { take_names(o, names); });
  };
  CHECK(read("red").value == Colour::red);
  CHECK(read("green").value == Colour::green);
  for (const char* text : {"", "0", "7", "Red", "blue"}) {
    INFO(text);
    CHECK(read(text).message.find("--option: unknown value '") == 0);
  }
  CHECK(read("gren").message.find("did you mean green?") != std::string::npos);
  CHECK(read("blue").message.find("choose one of red, green") != std::string::npos);
  const auto word = parsed<std::string>("txt", [](CLI::Option* o) { take_words(o, {"txt", "x"}); });
  CHECK(word.value == "txt");
}
