// Malformed files are refused with a reason, or read without harm.

#include <sys/stat.h>

#include <cstring>

#include "catch.h"
#include "checkpoint/safetensors.h"
#include "core/rng.h"
#include "folder.h"

namespace bamtrain {
namespace {

/// A file with this header text and this many bytes of data.
std::string file_of(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data, 'x');
}

/// Reads every tensor of the file at `path`. Returns false if it was refused.
bool readable(const std::string& path) {
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const int64_t size = static_cast<int64_t>(std::filesystem::file_size(path));
    for (const SafetensorsFile::Entry& entry : file.tensors()) {
      require(entry.offset >= 8 && entry.bytes >= 0 && entry.bytes <= size - entry.offset,
              "entries inside the file");
      std::string memory(static_cast<size_t>(entry.bytes), '\0');
      file.read(entry, memory.data());
    }
    return true;
  } catch (const Error& e) {
    REQUIRE(e.code() == ExitCode::checkpoint);
    REQUIRE(contains(e.what(), path));
    return false;
  }
}

const std::string kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},)"
    R"("b":{"data_offsets":[8,24],"dtype":"F64","shape":[2,1]}})";
constexpr size_t kGoodData = 24;

TEST_CASE("a header that breaks the format is refused, naming file and reason") {
  struct Case {
    std::string header;
    size_t data;
    std::string reason;
  };
  const auto one = [](const std::string& body) { return "{\"a\":{" + body + "}}"; };
  const std::vector<Case> cases = {
      {"", 0, "begins with {"},
      {"[]", 0, "begins with {"},
      {" {}", 0, "begins with {"},
      {"\xEF\xBB\xBF{}", 0, "begins with {"},
      {"{} x", 0, "text after the JSON value"},
      {std::string("{}\0 ", 4), 0, "NUL byte"},
      {"{", 0, "invalid JSON"},
      {"{\"\xff\":1}", 0, "UTF-8"},
      {"{\"a\":\"" + std::string(100000, 'x'), 0, "invalid JSON"},
      {"{\"" + std::string(100000, 'x') + "\":1}", 0, "an object of dtype"},
      {"{\"a\":{\"" + std::string(100000, 'x') + "\":1,\"" + std::string(100000, 'x') + "\":1}}", 0,
       "xxx"},
      {"{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", 0, "nested deeper than"},
      {"{\"a\":" + std::string(1000000, '['), 0, "nested deeper than"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4])"), 4,
       "duplicate key"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "duplicate key \"a\""},
      {"{\"a\":1}", 0, "an object of dtype"},
      {one(R"("dtype":"F32","shape":[1])"), 4, "an object of dtype"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1)"), 4, "an object of dtype"},
      {one(R"("type":"F32","shape":[1],"data_offsets":[0,4])"), 4, "a dtype"},
      {one(R"("dtype":7,"shape":[1],"data_offsets":[0,4])"), 4, "a dtype"},
      {one(R"("dtype":"I16","shape":[2],"data_offsets":[0,4])"), 4, "\"a\": expected dtype F64"},
      {one(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), 4, "found dtype f32"},
      {one(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), 4, "shape as a list"},
      {one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4, "shape as a list"},
      {one(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), 4, "shape as a list"},
      {one(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])"), 4, "2^63"},
      {one(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])"), 4, "2^63"},
      {one(R"("dtype":"F32","shape":[2147483648,2147483648,2],"data_offsets":[0,0])"), 0, "2^63"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0])"), 4,
       "data_offsets as a list"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), 4, "begin and end"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), 4, "begin and end"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4, "falling"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), 8, "4 bytes for (1) F32"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8, "data from offset 0"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 3, "found 3"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 5, "found 5"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "data from offset 4"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "data from offset 8"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "data from offset 4"},
      {"{\"__metadata__\":1}", 0, "an object of strings"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "an object of strings"}};
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_bytes(path, file_of(kGood, kGoodData));
  REQUIRE(readable(path));
  for (const Case& c : cases) {
    INFO(c.header.substr(0, 200) << " with " << c.data << " bytes, expecting: " << c.reason);
    write_bytes(path, file_of(c.header, c.data));
    const std::string message =
        error_of(ExitCode::checkpoint, [&] { SafetensorsFile::open(path); });
    INFO(message);
    CHECK(contains(message, path));
    CHECK(contains(message, c.reason));
    CHECK(message.size() < 1000);
  }
}

TEST_CASE("a header length that the file or the format does not have is refused unallocated") {
  const TemporaryFolder folder;
  const std::string good = file_of(kGood, kGoodData);
  const uint64_t rest = good.size() - 8;
  for (uint64_t length : {rest + 1, uint64_t{100000001}, uint64_t{1} << 62, uint64_t{1} << 63,
                          ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &length, 8);
    write_bytes(folder / "file", bytes);
    const std::string message =
        error_of(ExitCode::checkpoint, [&] { SafetensorsFile::open(folder / "file"); });
    INFO(message);
    CHECK(contains(message, "a header of at most " + std::to_string(rest)));
    CHECK(contains(message, std::to_string(length)));
  }
}

TEST_CASE("a file cut off at any length is refused") {
  const TemporaryFolder folder;
  const std::string good = file_of(kGood, kGoodData);
  for (size_t length = 0; length < good.size(); ++length) {
    write_bytes(folder / "file", good.substr(0, length));
    INFO(length);
    CHECK(!readable(folder / "file"));
  }
  write_bytes(folder / "file", good + "x");
  CHECK(!readable(folder / "file"));
}

TEST_CASE("a file that shrinks while it is open gives an error, not a crash") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", file_of(kGood, kGoodData));
  const SafetensorsFile file = SafetensorsFile::open(folder / "file");
  std::filesystem::resize_file(folder / "file", 100);
  double b[2];
  const std::string message =
      error_of(ExitCode::checkpoint, [&] { file.read(*file.find("b"), b); });
  CHECK(contains(message, "the end of the file"));
}

TEST_CASE("what is not a regular file is refused instead of waited for") {
  const TemporaryFolder folder;
  CHECK(contains(error_of(ExitCode::checkpoint, [&] { SafetensorsFile::open(folder / "none"); }),
                 "no such file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder.path(), folder / "pipe"}) {
    CHECK(error_of(ExitCode::checkpoint, [&] {
            SafetensorsFile::open(path);
          }).starts_with(path + ": expected a regular file"));
  }
}

TEST_CASE("random mutations of a header never crash and never give entries outside the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const std::vector<std::string> words = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\u0000",
                                          "\\ud800",
                                          "-1",
                                          "1e99",
                                          "0",
                                          "4",
                                          "8",
                                          "16",
                                          "18446744073709551615",
                                          "9223372036854775807",
                                          "null",
                                          "\"F32\"",
                                          "\"BF16\"",
                                          "\"I32\"",
                                          "\"shape\"",
                                          "\"data_offsets\"",
                                          "\"a\"",
                                          "\"__metadata__\"",
                                          "[0,4]",
                                          "[8,24]",
                                          "[]",
                                          "{}",
                                          std::string(1, '\0'),
                                          "\xff",
                                          "\xc3\xa9",
                                          "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};
  const Rng rng(7, "safetensors mutations");
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.below(draw++, n); };
  int accepted = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::string header = kGood;
    size_t data = kGoodData;
    for (uint64_t edits = 1 + below(3); edits > 0; --edits) {
      const size_t at = below(header.size() + 1);
      const size_t length = below(std::min<uint64_t>(header.size() - at, 12) + 1);
      switch (below(5)) {
        case 0:
          if (at < header.size()) header[at] = static_cast<char>(below(256));
          break;
        case 1:
          header.erase(at, length);
          break;
        case 2:
          header.insert(at, words[below(words.size())]);
          break;
        case 3:
          header.replace(at, length, words[below(words.size())]);
          break;
        default:
          header.insert(at, header.substr(below(header.size() + 1), below(60)));
      }
      if (header.empty()) header = " ";
    }
    if (below(8) == 0) data = below(64);
    std::string bytes = file_of(header, data);
    if (below(16) == 0) bytes[below(8)] = static_cast<char>(below(256));
    write_bytes(path, bytes);
    accepted += readable(path);
  }
  // Some edits keep the format (a digit of a name, a space), so the loop also reaches past the
  // header.
  CHECK(accepted > 0);
  CHECK(accepted < kRounds / 2);
}

}  // namespace
}  // namespace bamtrain
