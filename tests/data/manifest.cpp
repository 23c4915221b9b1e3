#include "data/manifest.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "files.h"

namespace bamtrain {
namespace {

using namespace testing;

const std::string kA(64, 'a');
const std::string kB = std::string(32, '0') + std::string(32, '9');

Manifest example_manifest() {
  Manifest m;
  m.tokenizer_file = "tokenizer.model";
  m.tokenizer_sha256 = kA;
  m.vocab = 32768;
  m.bos = 1;
  m.document_start = 1;
  m.tokens = 4294967300;  // past 2^32
  m.documents = 7;
  m.shards = {{"000000.bin", 2147483647, 3, kA},
              {"000001.bin", 2147483647, 4, kB},
              {"000002.bin", 6, 0, kA}};
  return m;
}

/// From Python: sha256(json.dumps(m, separators=(",", ":")).encode()), where m is
/// example_manifest() in format 3.
const std::string kDigest = "9bf0fc480e1ab99f5ffe2f918b7471c499dcd049b8d0d6328c9abdb358219650";

/// Likewise in format 2, and in format 3 with null for the tokenizer's file.
const std::string kDigest2 = "3adccb95309adf268f29d2b9b34817b1071584fea80f3633f647e6b5df2b537b";
const std::string kDigestNull = "aa98dc2596a9a6f1bdccb32551a6813e8fb25b98c26b37252e342ff598c81a89";

/// The same manifest written by hand, in the documented format.
const std::string kExample =
    R"({"format": 3,
        "tokenizer": {"file": "tokenizer.model", "sha256": ")" +
    kA + R"(", "vocab": 32768, "bos": 1, "eos": null},
        "document_start": 1, "tokens": 4294967300, "documents": 7,
        "shards": [
          {"file": "000000.bin", "tokens": 2147483647, "documents": 3, "sha256": ")" +
    kA + R"("},
          {"file": "000001.bin", "tokens": 2147483647, "documents": 4, "sha256": ")" +
    kB + R"("},
          {"file": "000002.bin", "tokens": 6, "documents": 0, "sha256": ")" +
    kA + R"("}], "digest": ")" + kDigest + R"("})";

std::string replaced(const std::string& from, const std::string& to, std::string text = kExample) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The message of the Error from reading this text. Checks that it names the file.
std::string manifest_refusal(const std::string& text) {
  return file_refusal("manifest.json", text, [](const std::string& path) { read_manifest(path); });
}

TEST_CASE("a manifest written by hand in the documented format is read") {
  const TemporaryFolder folder;
  write_bytes(folder.file("manifest.json"), kExample);
  CHECK(read_manifest(folder.file("manifest.json")) == example_manifest());
}

TEST_CASE("a manifest comes back as it was written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  Manifest m = example_manifest();
  write_manifest(path, m);
  CHECK(read_manifest(path) == m);
  m.bos.reset();
  m.document_start.reset();
  m.eos = 32767;
  m.shards.clear();
  m.tokens = m.documents = 0;
  write_manifest(path, m);
  CHECK(read_manifest(path) == m);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a manifest that cannot be opened is an io error") {
  const TemporaryFolder folder;
  const std::string missing = folder.file("manifest.json");
  CHECK(contains(error_of(ExitCode::io, [&] { read_manifest(missing); }), missing));
  CHECK(contains(error_of(ExitCode::io, [&] { read_manifest(folder.path()); }), folder.path()));
}

TEST_CASE("a manifest cut off anywhere is refused") {
  for (size_t n = 0; n < kExample.size(); ++n) {
    INFO(n << " bytes");
    CHECK(contains(manifest_refusal(kExample.substr(0, n)), "invalid JSON"));
  }
}

TEST_CASE("each damaged field of a manifest is named") {
  struct Case {
    std::string from, to, field, expected;
  };
  const std::string trillion = "1000000000000", huge = "18446744073709551615";
  const std::vector<Case> cases = {
      {"\"format\": 3", "\"format\": 4", ": format", "newer bamtrain"},
      {"\"format\": 3", "\"format\": 2", "tokenizer.file", "unknown field"},
      {"\"format\": 3", "\"format\": 1", ": digest", "unknown field"},
      {"\"file\": \"tokenizer.model\", ", "", "tokenizer.file", "missing"},
      {"\"tokenizer.model\"", "3", "tokenizer.file", "a string"},
      {"tokenizer.model", "", "tokenizer.file", "(not the name of a file)"},
      {"tokenizer.model", "..", "tokenizer.file", "(not the name of a file)"},
      {"tokenizer.model", "../t.model", "tokenizer.file", "(not the name of a file)"},
      {"tokenizer.model", ".t.model", "tokenizer.file", "(a hidden file)"},
      {"tokenizer.model", "000003.bin", "tokenizer.file", "(*.bin are shards)"},
      {"tokenizer.model", "manifest.json", "tokenizer.file", "(the manifest has this name)"},
      {"tokenizer.model", std::string(201, 't'), "tokenizer.file", "(longer than 200 bytes)"},
      {"000001.bin", "tokenizer.model", "shards[1].file", "tokenizer.model twice"},
      {"\"digest\"", "\"digesu\"", ": digesu", "unknown field"},
      {"\"format\": 3", "\"format\": 0", ": format", "an integer from 1"},
      {"\"format\": 3", "\"format\": \"3\"", ": format", "found string"},
      {"\"format\": 3,", "", ": format", "missing"},
      {"\"format\": 3", "\"format\": 3, \"extra\": 1", ": extra", "unknown field"},
      {"\"format\": 3", "\"format\": 3, \"format\": 3", "\"format\"", "duplicate key"},
      {"\"eos\": null", "\"eos\": null, \"bos\": 2", "bos\"", "duplicate key"},
      {"\"eos\": null", "\"eos\": null, \"pad\": 2", "tokenizer.pad", "unknown field"},
      {", \"eos\": null", "", "tokenizer.eos", "missing"},
      {"\"eos\": null", "\"eos\": 32768", "tokenizer.eos", "from 0 to 32767"},
      {"\"bos\": 1", "\"bos\": -1", "tokenizer.bos", "from 0 to 32767"},
      {"\"bos\": 1", "\"bos\": true", "tokenizer.bos", "found boolean"},
      {"\"vocab\": 32768", "\"vocab\": 0", "tokenizer.vocab", "from 1 to"},
      {"\"vocab\": 32768", "\"vocab\": 1.5", "tokenizer.vocab", "found 1.5"},
      {"\"vocab\": 32768", "\"vocab\": " + huge, "tokenizer.vocab", huge},
      {"\"sha256\": \"a", "\"sha256\": \"A", "tokenizer.sha256", "64 lower-case hex"},
      {"\"sha256\": \"a", "\"sha256\": \"", "tokenizer.sha256", "64 lower-case hex"},
      {"\"document_start\": 1", "\"document_start\": 40000", ": document_start", "from 0 to"},
      {"4294967300", "4294967301", ": tokens", "4294967300, the sum"},
      {"4294967300", huge, ": tokens", huge},
      {"4294967300", "9223372036854775808", ": tokens", "9223372036854775808"},
      {"4294967300", "18446744073709551616", ": tokens", "an integer"},
      {"\"documents\": 7", "\"documents\": 8", ": documents", "7, the sum"},
      {"\"tokens\": 6", "\"tokens\": 2147483648", "shards[2].tokens", "2147483648"},
      {"\"tokens\": 6", "\"tokens\": " + trillion, "shards[2].tokens", trillion},
      {"\"tokens\": 6", "\"tokens\": 6e0", "shards[2].tokens", "an integer"},
      {"\"documents\": 0", "\"documents\": 7", "shards[2].documents", "from 0 to 6"},
      {"\"file\": \"000001.bin\", ", "", "shards[1].file", "missing"},
      {"000001.bin", "000000.bin", "shards[1].file", "000000.bin twice"},
      {"000001.bin", "../1.bin", "shards[1].file", "in the manifest's folder"},
      {"000001.bin", "..", "shards[1].file", "in the manifest's folder"},
      {"000001.bin", "a\\u0000b", "shards[1].file", "in the manifest's folder"},
      {"000001.bin", "", "shards[1].file", "in the manifest's folder"},
      {"\"file\": \"000001.bin\"", "\"file\": 1", "shards[1].file", "a string"},
      {"{\"file\": \"000000.bin\"", "null, {\"file\": \"000000.bin\"", "shards[0]", "an object"},
      {"\"shards\": [", "\"other\": [", ": other", "unknown field"},
      {"000001.bin", "\xFF", "invalid JSON", "UTF-8"},
      {"4294967300", "1e999", "number out of range", "overflow"},
  };
  for (const Case& c : cases) {
    INFO(c.from << " -> " << c.to);
    const std::string message = manifest_refusal(replaced(c.from, c.to));
    INFO(message);
    CHECK(contains(message, c.field));
    CHECK(contains(message, c.expected));
  }
  CHECK(contains(manifest_refusal("[]"), "an object"));
  CHECK(contains(manifest_refusal(kExample + "{}"), "text after the JSON value"));
  CHECK(contains(manifest_refusal(std::string(100000, '[')), "nested deeper than"));
}

TEST_CASE("a field that is another than when the manifest was written is found by the digest") {
  const std::string eos = "\"eos\": null", start = "\"document_start\": 1";
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{kA, "b" + kA.substr(1)},
                                                        {"32768", "32769"},
                                                        {"tokenizer.model", "tokenizer.json"},
                                                        {"\"tokenizer.model\"", "null"},
                                                        {"\"bos\": 1", "\"bos\": 0"},
                                                        {"\"bos\": 1", "\"bos\": null"},
                                                        {eos, "\"eos\": 2"},
                                                        {start, "\"document_start\": 3"},
                                                        {kB, kA},
                                                        {"000002.bin", "000003.bin"},
                                                        {kDigest, "0" + kDigest.substr(1)}}) {
    INFO(from << " -> " << to);
    const std::string message = manifest_refusal(replaced(from, to));
    CHECK(contains(message, ": digest: mismatch: recorded "));
    CHECK(contains(message, ", computed "));
  }
  // White space is not part of the digest.
  const TemporaryFolder folder;
  write_bytes(folder.file("manifest.json"), replaced(", ", "  ,\n"));
  CHECK(read_manifest(folder.file("manifest.json")) == example_manifest());
}

TEST_CASE("every flipped bit of a manifest is found") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  write_manifest(path, example_manifest());
  const std::string good = read_bytes(path);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    write_bytes(path, bad);
    INFO("bit " << bit);
    error_of(ExitCode::data, [&] { read_manifest(path); });
  }
}

/// kExample as programs wrote it before manifests named the tokenizer's file.
std::string format_2() {
  std::string text = replaced("\"format\": 3", "\"format\": 2");
  text = replaced("\"file\": \"tokenizer.model\", ", "", text);
  return replaced(kDigest, kDigest2, text);
}

/// And before there were digests.
std::string format_1() {
  std::string text = replaced("\"format\": 2", "\"format\": 1", format_2());
  return text.erase(text.find(", \"digest\"")) + "}";
}

TEST_CASE("manifests of older formats are read, and written anew without a tokenizer's file") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  Manifest expected = example_manifest();
  expected.tokenizer_file.clear();
  for (const int64_t format : {1, 2}) {
    write_bytes(path, format == 1 ? format_1() : format_2());
    Manifest m = read_manifest(path);
    expected.format = format;
    CHECK(m == expected);
    write_manifest(path, m);
    expected.format = 3;
    CHECK(read_manifest(path) == expected);
    CHECK(contains(read_bytes(path), "\"file\": null"));
    CHECK(contains(read_bytes(path), kDigestNull));
  }
  CHECK(contains(manifest_refusal(replaced(kDigest2, kDigest, format_2())), ": digest: mismatch"));
}

TEST_CASE("a manifest that could not be read is not written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  write_manifest(path, example_manifest());
  Manifest m = example_manifest();
  m.tokens += 1;
  CHECK(contains(error_of(ExitCode::data, [&] { write_manifest(path, m); }), "the sum"));
  m = example_manifest();
  m.shards[0].file = "\xFF.bin";
  CHECK(contains(error_of(ExitCode::data, [&] { write_manifest(path, m); }), "UTF-8"));
  m = example_manifest();
  m.tokenizer_file = "a.bin";
  CHECK(contains(error_of(ExitCode::data, [&] { write_manifest(path, m); }), "tokenizer.file"));
  CHECK(read_manifest(path) == example_manifest());
  CHECK(folder.entries() == 1);
}

TEST_CASE("a manifest larger than any can be is refused before it is read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  write_bytes(path, "{");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);  // sparse: all but one byte is a hole
  CHECK(contains(error_of(ExitCode::data, [&] { read_manifest(path); }), "1099511627776"));
}

TEST_CASE("a manifest that cannot be written leaves the old one and no temporary") {
  const TemporaryFolder folder;
  write_bytes(folder.file("file"), "");
  const std::string nowhere = folder.file("file/manifest.json");
  CHECK(contains(error_of(ExitCode::io, [&] { write_manifest(nowhere, example_manifest()); }),
                 nowhere));

  const std::string path = folder.file("manifest.json");
  write_manifest(path, example_manifest());
  Manifest other = example_manifest();
  other.vocab = 50000;
  set_file_fault([](FileOp op, const std::string&, const std::string&) {
    return op == FileOp::write ? ENOSPC : 0;
  });
  const std::string message = error_of(ExitCode::io, [&] { write_manifest(path, other); });
  set_file_fault(nullptr);
  CHECK(contains(message, "No space left"));
  CHECK(read_manifest(path) == example_manifest());
  CHECK(folder.entries() == 2);
}

}  // namespace
}  // namespace bamtrain
