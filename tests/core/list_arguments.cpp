#include "core/list_arguments.h"

#include "catch.h"

using namespace bamtrain;

namespace {

using Words = std::vector<std::string>;

Words repeated(const Words& words) {
  std::vector<const char*> argv = {"prog"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return repeat_list_options(static_cast<int>(argv.size()), argv.data(),
                             {{"--set", is_setting}, {"--lengths", is_number_list}});
}

}  // namespace

TEST_CASE("an option of settings takes arguments up to the first without a key and a value") {
  CHECK(repeated({"--set", "a=1", "b.c=2", "RUN"}) ==
        Words{"--set", "a=1", "--set", "b.c=2", "RUN"});
  CHECK(repeated({"--set=a=1", "b=2", "x"}) == Words{"--set=a=1", "--set", "b=2", "x"});
  CHECK(repeated({"--set", "a=1", "--set", "b=2"}) == Words{"--set", "a=1", "--set", "b=2"});
  CHECK(repeated({"--set", "a=1", "--output=x", "b=2"}) ==
        Words{"--set", "a=1", "--output=x", "b=2"});
  CHECK(repeated({"--set", "a=1", "out/lr=3/run", "b=2"}) ==
        Words{"--set", "a=1", "out/lr=3/run", "b=2"});
  CHECK(repeated({"--set", "a=x y=z", "b={\"c\": 1}"}) ==
        Words{"--set", "a=x y=z", "--set", "b={\"c\": 1}"});
}

TEST_CASE("an option of numbers takes numbers") {
  CHECK(repeated({"--lengths", "64", "128,256", "out/run"}) ==
        Words{"--lengths", "64", "--lengths", "128,256", "out/run"});
  CHECK(repeated({"--lengths=64", "a=1"}) == Words{"--lengths=64", "a=1"});
}

TEST_CASE("an option's first value is its own, whatever it looks like") {
  CHECK(repeated({"--set", "--lengths", "64"}) == Words{"--set", "--lengths", "64"});
  CHECK(repeated({"--set", "RUN", "a=1"}) == Words{"--set", "RUN", "--set", "a=1"});
  CHECK(repeated({"--set"}) == Words{"--set"});
}

TEST_CASE("arguments of other options, and those after two dashes, are left alone") {
  CHECK(repeated({"--data", "a=1", "b=2"}) == Words{"--data", "a=1", "b=2"});
  CHECK(repeated({"--set", "a=1", "--", "b=2"}) == Words{"--set", "a=1", "--", "b=2"});
  CHECK(repeated({}).empty());
}
