#include "data_tools/tokenize_settings.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

/// Files a, b, c, ... with these sizes in bytes.
std::vector<std::string> files(const TemporaryFolder& folder, const std::vector<size_t>& sizes) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < sizes.size(); ++i) {
    paths.push_back(folder.file(std::string(1, static_cast<char>('a' + i))));
    write_bytes(paths.back(), std::string(sizes[i], 'x'));
  }
  return paths;
}

/// The files of each part, by their letters: "ab c d".
std::string parts(const std::vector<std::string>& paths, int64_t of) {
  std::string text;
  for (int64_t number = 1; number <= of; ++number) {
    if (number > 1) text += ' ';
    for (const std::string& path : inputs_of_part(paths, {number, of})) text += path.back();
  }
  return text;
}

TEST_CASE("parts are files in their order, of about as many bytes") {
  const TemporaryFolder folder;
  const auto equal = files(folder, {10, 10, 10, 10, 10, 10});
  CHECK(parts(equal, 1) == "abcdef");
  CHECK(parts(equal, 2) == "abc def");
  CHECK(parts(equal, 3) == "ab cd ef");
  CHECK(parts(equal, 6) == "a b c d e f");
  CHECK(parts(equal, 4) == "a bc d ef");
  const auto other = files(folder, {60, 10, 10, 10, 10});
  CHECK(parts(other, 2) == "a bcde");
}

TEST_CASE("parts without a file, and inputs that are no files, are refused") {
  const TemporaryFolder folder;
  const auto paths = files(folder, {10, 10, 10});
  for (int64_t number = 1; number <= 4; ++number) {
    CHECK(contains(error_of(ExitCode::usage,
                            [&] {
                              inputs_of_part(paths, {number, 4});
                            }),
                   "ask for fewer parts"));
  }
  CHECK(contains(error_of(ExitCode::usage,
                          [&] {
                            inputs_of_part(files(folder, {0, 0}), {1, 2});
                          }),
                 "no file in part 2 of 2"));
  CHECK(contains(error_of(ExitCode::usage, [&] { inputs_of_part({"-"}, {1, 1}); }), "--part"));
}

TEST_CASE("inputs are told by names and sizes, or also by folder and time") {
  const TemporaryFolder one, two;
  const auto here = files(one, {3, 4}), there = files(two, {3, 4}), other = files(two, {3, 5});
  CHECK(digest_of_inputs(here) != digest_of_inputs(other));
  files(two, {3, 4});
  CHECK(digest_of_inputs(here) == digest_of_inputs(there));
  nlohmann::ordered_json a, b, c;
  CHECK(add_inputs(here, &a));
  CHECK(add_inputs(here, &b));
  CHECK(a == b);
  std::filesystem::last_write_time(
      here[1], std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(add_inputs(here, &c));
  CHECK(a != c);
  CHECK_FALSE(add_inputs({"-"}, &c));
}

}  // namespace
}  // namespace bamtrain
