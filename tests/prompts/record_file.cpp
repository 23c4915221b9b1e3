#include "prompts/record_file.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "data/files.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

std::vector<std::string> names(const std::string& path, int64_t most = INT64_MAX) {
  std::vector<std::string> out;
  read_records(path, most, [&](const JsonObject& record, int64_t line) {
    out.push_back(std::to_string(line) + " " + record.text("name"));
  });
  return out;
}

}  // namespace

TEST_CASE("records are the lines that hold something, the last one without its newline too") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_bytes(path, "{\"name\": \"a\"}\r\n \t\r\n\n{\"name\": \"b\"}");
  CHECK(names(path) == std::vector<std::string>{"1 a", "4 b"});
  CHECK(names(path, 1) == std::vector<std::string>{"1 a"});
  write_bytes(path, "{\"name\": \"a\"}\nno JSON");
  CHECK(names(path, 1) == std::vector<std::string>{"1 a"});  // records past the limit are not read
}

TEST_CASE("what is no file of records is refused by its place") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  CHECK(contains(error_of(ExitCode::io, [&] { names(path); }), path));
  for (const char* empty : {"", "\n\n", " "}) {
    write_bytes(path, empty);
    CHECK(contains(error_of(ExitCode::data, [&] { names(path); }),
                   path + ": no JSON objects, one a line"));
  }
  for (const char* line : {"{\"name\": \"a\"", "{} x", "[1]", "3", "{\"name\": \"\xff\"}"}) {
    write_bytes(path, "{\"name\": \"a\"}\n\n" + std::string(line) + "\n");
    INFO(line);
    CHECK(contains(error_of(ExitCode::data, [&] { names(path); }), path + ":3"));
  }
  write_bytes(path, "{\"name\": 3}");
  CHECK(contains(error_of(ExitCode::data, [&] { names(path); }),
                 path + ":1: name: expected a string, found 3"));
}
