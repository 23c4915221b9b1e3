#include "data_tools/tokenize.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "core/sha256.h"
#include "data/shard_set.h"
#include "data/tokenizer.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

/// The documents in a folder's shards as text, read without src/data.
std::vector<std::string> decoded(const std::string& folder, const Tokenizer& tokenizer) {
  std::vector<std::string> files, texts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".bin") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    for (const auto& document : split_at(uint16_tokens(file), tokenizer.bos())) {
      texts.push_back(tokenizer.decode(document));
    }
  }
  return texts;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

TEST_CASE("CRLF gives the tokens of newlines, in every kind of document") {
  const std::string lines = "The old sailor\n\na quiet river\n\n = T = \n\nthe long road\n";
  std::string crlf;
  for (const char c : lines) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const DocumentKind kind :
       {DocumentKind::line, DocumentKind::file, DocumentKind::blank_line, DocumentKind::wikitext}) {
    const TemporaryFolder one, two;
    const TokenizeOptions plain = options_for(one, lines, kind),
                          other = options_for(two, crlf, kind);
    run(plain);
    run(other);
    CHECK(uint16_tokens(plain.output + "/train/000000.bin") ==
          uint16_tokens(other.output + "/train/000000.bin"));
  }
}

TEST_CASE("shards decode to the documents, in order, and the manifest describes them") {
  const TemporaryFolder folder;
  const std::string text = numbered_lines(600);
  TokenizeOptions o = options_for(folder, text, DocumentKind::line);
  o.shard_tokens = 5000;
  const TokenizeReport report = run(o);
  const Tokenizer tokenizer = Tokenizer::open(o.tokenizer);
  CHECK(decoded(o.output + "/train", tokenizer) == lines_of(text));
  CHECK_FALSE(fs::exists(o.output + "/val"));

  const auto manifest = nlohmann::json::parse(read_bytes(o.output + "/train/manifest.json"));
  CHECK(manifest["tokenizer"]["sha256"] == sha256_file(o.tokenizer));
  CHECK(manifest["tokenizer"]["vocab"] == 500);
  CHECK(manifest["tokenizer"]["bos"] == 1);
  CHECK(manifest["tokenizer"]["eos"] == 2);
  CHECK(manifest["document_start"] == 1);
  CHECK(manifest["documents"] == 600);
  int64_t tokens = 0;
  REQUIRE(manifest["shards"].size() > 3);
  for (const auto& shard : manifest["shards"]) {
    const std::string path = o.output + "/train/" + shard["file"].get<std::string>();
    const std::vector<int32_t> ids = uint16_tokens(path);
    tokens += static_cast<int64_t>(ids.size());
    CHECK(shard["sha256"] == sha256_file(path));
    CHECK(shard["tokens"] == ids.size());
    CHECK(shard["documents"] == std::count(ids.begin(), ids.end(), 1));
    CHECK(ids.front() == 1);  // documents are not split between shards
    const auto last = std::find(ids.rbegin(), ids.rend(), 1);
    CHECK(ids.rend() - last - 1 < 5000);  // below its size before the last document
    if (&shard != &manifest["shards"].back()) CHECK(ids.size() >= 5000);
  }
  CHECK(manifest["tokens"] == tokens);
  CHECK(report.train.tokens == tokens);
  CHECK(ShardSet::open(o.output + "/train", 500).tokens() == tokens);
}

TEST_CASE("the tokenizer's file stands next to the shards of both sets, which name it") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, numbered_lines(200), DocumentKind::line);
  o.validation.documents = 20;
  run(o);
  for (const char* set : {"/train", "/val"}) {
    const auto manifest =
        nlohmann::json::parse(read_bytes(o.output + set + std::string("/manifest.json")));
    CHECK(manifest["format"] == 3);
    CHECK(manifest["tokenizer"]["file"] == "small.model");
    CHECK(read_bytes(o.output + set + std::string("/small.model")) == read_bytes(o.tokenizer));
    CHECK(names_in(o.output + set) ==
          std::vector<std::string>{"000000.bin", "manifest.json", "small.model"});
  }
  o.overwrite = true;  // the set is tokenize's own, tokenizer included
  fs::rename(o.tokenizer, folder.file("other name"));
  o.tokenizer = folder.file("other name");
  run(o);
  CHECK(names_in(o.output + "/train") ==
        std::vector<std::string>{"000000.bin", "manifest.json", "other name"});
}

TEST_CASE("one, two and three threads write the same bytes") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, numbered_lines(6000), DocumentKind::line);
  o.shard_tokens = 50'000;
  SECTION("a number of validation documents") { o.validation.documents = 100; }
  SECTION("a fraction for validation, and EOS") {
    o.validation.fraction = 0.1;
    o.eos = true;
  }
  std::vector<std::map<std::string, std::string>> found;
  for (int threads : {1, 2, 3}) {
    o.threads = threads;
    o.output = folder.file("out" + std::to_string(threads));
    run(o);
    found.push_back(hashes(o.output));
  }
  CHECK(found[0].size() >= 5);
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}

TEST_CASE("the same text as txt, zst, xz, gz and JSON lines gives the same shards") {
  const TemporaryFolder folder;
  const std::string text = numbered_lines(500);
  TokenizeOptions o = options_for(folder, text, DocumentKind::line);
  std::string jsonl;
  for (const std::string& line : lines_of(text)) {
    jsonl += nlohmann::json{{"url", "x"}, {"body", line}}.dump() + "\n";
  }
  write_bytes(folder.file("in.txt.zst"), zstd_of(text));
  write_bytes(folder.file("in.txt.xz"), xz_of(text));
  write_bytes(folder.file("in.jsonl"), jsonl);
  write_bytes(folder.file("in.jsonl.zst"), zstd_of(jsonl));
  write_bytes(folder.file("in.jsonl.xz"), xz_of(jsonl));
  write_bytes(folder.file("in.txt.gz"), gzip_of(text));
  write_bytes(folder.file("in.jsonl.gz"), gzip_of(jsonl));
  o.input.field = "body";
  run(o);
  const auto expected = hashes(o.output);
  for (const char* name : {"in.txt.zst", "in.txt.xz", "in.txt.gz", "in.jsonl", "in.jsonl.zst",
                           "in.jsonl.xz", "in.jsonl.gz"}) {
    o.input.paths = {folder.file(name)};
    o.output = folder.file(std::string("out-") + name);
    run(o);
    CHECK(hashes(o.output) == expected);
  }
}

TEST_CASE("several inputs of different formats are one stream in the order given") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "first\nsecond\n", DocumentKind::line);
  write_bytes(folder.file("b.jsonl"), "{\"text\": \"third\\nline\"}\n");
  write_bytes(folder.file("c.txt.xz"), xz_of("fourth"));
  o.input.paths = {folder.file("in.txt"), folder.file("b.jsonl"), folder.file("c.txt.xz")};
  run(o);
  CHECK(decoded(o.output + "/train", Tokenizer::open(o.tokenizer)) ==
        std::vector<std::string>{"first", "second", "third\nline", "fourth"});
}

TEST_CASE("every document is in training or in validation, once") {
  const TemporaryFolder folder;
  const std::string text = numbered_lines(1000);
  TokenizeOptions o = options_for(folder, text, DocumentKind::line);
  size_t at_least = 0, at_most = 0;
  SECTION("a number of documents") {
    o.validation.documents = 37;
    at_least = at_most = 37;
  }
  SECTION("a fraction") {
    o.validation.fraction = 0.2;
    at_least = 150, at_most = 250;  // 200, plus or minus four standard deviations
  }
  run(o);
  const Tokenizer tokenizer = Tokenizer::open(o.tokenizer);
  const auto train = decoded(o.output + "/train", tokenizer);
  const auto val = decoded(o.output + "/val", tokenizer);
  CHECK(val.size() >= at_least);
  CHECK(val.size() <= at_most);
  std::vector<std::string> both = train;
  both.insert(both.end(), val.begin(), val.end());
  std::vector<std::string> expected = lines_of(text);
  std::sort(both.begin(), both.end());
  std::sort(expected.begin(), expected.end());
  CHECK(both == expected);
}

TEST_CASE("BOS begins and, on request, EOS ends every document") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "the road\nthe hills\n", DocumentKind::line);
  const Tokenizer tokenizer = [&] { return Tokenizer::open(o.tokenizer); }();
  const auto road = tokenizer.encode("the road"), hills = tokenizer.encode("the hills");
  for (bool eos : {false, true}) {
    std::vector<int32_t> expected;
    for (const auto& words : {road, hills}) {
      expected.push_back(1);
      expected.insert(expected.end(), words.begin(), words.end());
      if (eos) expected.push_back(2);
    }
    o.eos = eos;
    o.overwrite = true;
    run(o);
    CHECK(uint16_tokens(o.output + "/train/000000.bin") == expected);
  }
}

TEST_CASE("empty documents are left out and counted") {
  const TemporaryFolder folder;
  const TokenizeOptions o = options_for(folder, "a\n\n \nb\n\n", DocumentKind::line);
  const TokenizeReport report = run(o);
  CHECK(report.counts.empty == 3);
  CHECK(report.train.documents == 2);
  CHECK(contains(describe(report, o.output), "3 empty"));
}

TEST_CASE("ids are those of SentencePiece's own spm_encode") {
  const std::string model = shared_data("tokenizer/mistral-7b-v0.3.model");
  const std::string text = shared_data("tinyshakespeare.txt");
  if (model.empty() || text.empty()) return;
  if (std::system("command -v spm_encode > /dev/null") != 0) {
    std::printf("skipped: spm_encode (Debian package sentencepiece) is not there\n");
    return;
  }
  const TemporaryFolder folder;
  const std::string theirs = folder.file("ids.txt");
  REQUIRE(std::system(("spm_encode --model '" + model + "' --output_format id < '" + text +
                       "' > '" + theirs + "'")
                          .c_str()) == 0);
  TokenizeOptions o;
  o.input.paths = {text};
  o.input.kind = DocumentKind::line;
  o.tokenizer = model;
  o.output = folder.file("out");
  run(o);
  std::string mine;
  for (const auto& document : split_at(uint16_tokens(o.output + "/train/000000.bin"), 1)) {
    for (size_t i = 1; i < document.size(); ++i) {
      mine += (i == 1 ? "" : " ") + std::to_string(document[i]);
    }
    mine += "\n";
  }
  std::string expected;  // empty lines are not documents
  for (const std::string& line : lines_of(read_bytes(theirs))) {
    if (!line.empty()) expected += line + "\n";
  }
  CHECK(mine == expected);
}

TEST_CASE("a vocabulary past 65,536 ids makes shards of 4 bytes a token") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  // Unused ids appended to the model: messages of field 1 {1: piece, 3: type 5}.
  std::string model = read_bytes(o.tokenizer);
  for (int i = 500; i < 65'537; ++i) {
    const std::string piece = "<extra " + std::to_string(100'000 + i) + ">";
    const std::string body =
        std::string("\x0A") + static_cast<char>(piece.size()) + piece + "\x18\x05";
    model += std::string("\x0A") + static_cast<char>(body.size()) + body;
  }
  write_bytes(o.tokenizer, model);
  run(o);
  const std::string bytes = read_bytes(o.output + "/train/000000.bin");
  CHECK(bytes.substr(0, 8) == little_endian(20240801, 4) + little_endian(7, 4));
  std::string expected = little_endian(1, 4);
  for (int32_t id : Tokenizer::open(o.tokenizer).encode("the road")) {
    expected += little_endian(static_cast<uint32_t>(id), 4);
  }
  CHECK(bytes.substr(1024) == expected);
}

TEST_CASE("a 100 MB line is one document, and no character of it is lost") {
  const TemporaryFolder folder;
  std::string line;
  for (int i = 0; line.size() < 100'000'000; ++i) {
    line += sample_sentences()[static_cast<size_t>(i) % 216] + std::to_string(i % 1000) + " ";
    if (line.size() > 100'000) break;
  }
  while (line.size() < 100'000'000) line += line.substr(0, 100'000'000 - line.size());
  const TokenizeOptions o = options_for(folder, line, DocumentKind::line);
  const TokenizeReport report = run(o);
  CHECK(report.train.documents == 1);
  // Its entries, joined, are a space and the text: the tokenizer puts a space before every text.
  const Tokenizer tokenizer = Tokenizer::open(o.tokenizer);
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    std::string piece = id == tokenizer.bos() ? "" : tokenizer.piece(id);
    if (id >= 3 && id < 3 + 256) piece = std::string(1, static_cast<char>(id - 3));  // "<0x..>"
    for (size_t at; (at = piece.find("\u2581")) != std::string::npos;) piece.replace(at, 3, " ");
    pieces.push_back(piece);
  }
  std::string joined;
  for (int32_t id : uint16_tokens(o.output + "/train/000000.bin")) {
    joined += pieces.at(static_cast<size_t>(id));
  }
  CHECK((joined == " " + line));  // in parentheses: not printed
}

}  // namespace
}  // namespace bamtrain
