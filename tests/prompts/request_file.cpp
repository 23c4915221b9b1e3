#include "prompts/request_file.h"

#include "catch.h"
#include "data/files.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("requests stand as they are") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_bytes(path,
              "{\"context\": \"\", \"continuation\": \" x\\n\"}\n\n"
              "{\"context\": \"a  \", \"continuation\": \" \", \"more\": 1}\n");
  const RequestFile file = read_request_file(path, INT64_MAX);
  REQUIRE(file.requests.size() == 2);
  CHECK(file.requests[0].context.empty());
  CHECK(file.requests[0].continuation == " x\n");
  CHECK(file.requests[1].context == "a  ");
  CHECK(file.requests[1].continuation == " ");
  CHECK(file.requests[1].line == 3);
  CHECK(read_request_file(path, 1).requests.size() == 1);
}

TEST_CASE("requests of OLMES and lm-evaluation-harness are read from within") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_bytes(path,
              "{\"request_type\": \"loglikelihood\", \"doc\": {\"id\": 7}, \"request\": "
              "{\"context\": \"Question: a\\nAnswer:\", \"continuation\": \" b\"}, \"idx\": 0}\n"
              "{\"context\": \"c\", \"continuation\": \" d\", \"request\": \"its own field\"}\n");
  const RequestFile file = read_request_file(path, INT64_MAX);
  REQUIRE(file.requests.size() == 2);
  CHECK(file.requests[0].context == "Question: a\nAnswer:");
  CHECK(file.requests[0].continuation == " b");
  CHECK(file.requests[0].line == 1);
  CHECK(file.requests[1].context == "c");
  const auto refused = [&](const std::string& line) {
    write_bytes(path, line);
    return error_of(ExitCode::data, [&] { read_request_file(path, INT64_MAX); });
  };
  CHECK(contains(refused("{\"request\": {\"context\": \"a\", \"continuation\": \"\"}}"),
                 path + ":1: request: continuation: expected some text, found an empty text"));
  // A request for generation has no continuation.
  CHECK(contains(refused("{\"request\": {\"context\": \"a\", \"stop_sequences\": []}}"),
                 path + ":1: request: continuation: missing (a string)"));
  CHECK(contains(refused("{\"request\": 1}"), path + ":1: request: expected "));
}

TEST_CASE("requests without a continuation, and texts without a last word, are refused by line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_bytes(path, "{\"context\": \"a\", \"continuation\": \"\"}");
  CHECK(contains(error_of(ExitCode::data, [&] { read_request_file(path, INT64_MAX); }),
                 path + ":1: continuation: expected some text, found an empty text"));
  write_bytes(path, "{\"continuation\": \"a\"}");
  CHECK(contains(error_of(ExitCode::data, [&] { read_request_file(path, INT64_MAX); }),
                 path + ":1: context: missing (a string)"));
  for (const char* text : {"", " ", "two words ", "a \\u00a0"}) {
    write_bytes(path, "{\"text\": \"a b\"}\n{\"text\": \"" + std::string(text) + "\"}");
    CHECK(contains(error_of(ExitCode::data, [&] { read_cloze_file(path, INT64_MAX); }),
                   path + ":2: text: expected a word after the last space"));
  }
}
