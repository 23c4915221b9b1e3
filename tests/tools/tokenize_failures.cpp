// What tokenize refuses. It must leave nothing then.

#include <filesystem>
#include <string>

#include "catch.h"
#include "data_tools/tokenize.h"
#include "data_tools/train_tokenizer.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("on an error nothing is left, and the first one in the text is reported") {
  const TemporaryFolder folder;
  std::string text = numbered_lines(4000);
  text.insert(text.find("\n2000 ") + 1, "b\xFF\n");
  text.insert(text.find("\n3500 ") + 1, "c\xFE\n");
  TokenizeOptions o = options_for(folder, text, DocumentKind::line);
  o.input.max_document_bytes = 100'000;
  write_bytes(o.input.paths[0], text + std::string(200'000, 'x') + "\n");
  for (int threads : {1, 3}) {
    o.threads = threads;
    const std::string message = error_of(ExitCode::data, [&] { run(o); });
    CHECK(contains(message, "in.txt:2001"));
    CHECK(contains(message, "0xFF"));
    CHECK(folder.entries() == 2);  // the text and the tokenizer
  }
  // If reading the text fails, errors in the text before it are still reported.
  write_bytes(o.input.paths[0], "a\xFF\n" + std::string(200'000, 'x') + "\n");
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "in.txt:1:"));
  write_bytes(o.input.paths[0], text + std::string(200'000, 'x') + "\n");
  o.input.invalid_utf8 = InvalidUtf8::skip;
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "in.txt:4003"));
  o.input.max_document_bytes = 1 << 20;
  const TokenizeReport report = run(o);
  CHECK(report.counts.skipped == 2);
  CHECK(report.train.documents == 4001);
}

TEST_CASE("compressed bytes without a magic become no text, whatever the number of threads") {
  const TemporaryFolder folder;
  // Bytes from a linear congruential generator, without NUL, with a newline every 200 bytes. 56 %
  // are not part of a UTF-8 character.
  std::string noise;
  for (uint32_t x = 1, n = 1; noise.size() < 300'000; ++n) {
    x = x * 1664525 + 1013904223;
    const auto byte = static_cast<unsigned char>(x >> 24);
    noise += n % 200 == 0                                ? '\n'
             : byte == 0 || byte == '\n' || byte == '\r' ? 'x'
                                                         : static_cast<char>(byte);
  }
  TokenizeOptions o = options_for(folder, "a good line\n" + noise, DocumentKind::line);
  for (const InvalidUtf8 how : {InvalidUtf8::replace, InvalidUtf8::skip}) {
    o.input.invalid_utf8 = how;
    std::string first;
    for (const int threads : {1, 3}) {
      o.threads = threads;
      const std::string message = error_of(ExitCode::data, [&] { run(o); });
      CHECK(contains(message, "in.txt:2, offset "));
      CHECK(contains(message, "expected at most 10 % of bytes that are not valid UTF-8"));
      if (first.empty()) first = message;
      CHECK(message == first);
      CHECK_FALSE(fs::exists(o.output));
    }
  }
  TrainTokenizerOptions train;
  train.input = o.input;
  train.vocab = 300;
  train.output = folder.file("t.model");
  CHECK(contains(
      error_of(ExitCode::data,
               [&] { without_log([&](std::FILE* log) { return train_tokenizer(train, log); }); }),
      "in.txt:2, offset "));
}

TEST_CASE("a text with a cut character in each document goes through") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += std::to_string(i) + " the quiet river \xE4\xBA\n";
  REQUIRE(text.size() > 65536);
  TokenizeOptions o = options_for(folder, text, DocumentKind::line);
  o.input.invalid_utf8 = InvalidUtf8::replace;
  CHECK(run(o).counts.replaced == 4000);
}

TEST_CASE("an output folder with content is kept, unless it is a set to overwrite") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  o.validation.documents = 0;
  run(o);
  const auto before = hashes(o.output);
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "--overwrite"));
  CHECK(hashes(o.output) == before);
  o.overwrite = true;
  write_bytes(o.input.paths[0], "the hills\n");
  run(o);
  CHECK(hashes(o.output) != before);
  CHECK(folder.entries() == 3);

  write_bytes(o.output + "/thesis.txt", "mine");
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "thesis.txt"));
  CHECK(read_bytes(o.output + "/thesis.txt") == "mine");
  CHECK(folder.entries() == 3);
}

TEST_CASE("a folder that has the name of the work by chance stays, whatever the call ends with") {
  const TemporaryFolder folder;
  const TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  fs::create_directories(folder.file("thesis/chapters"));
  write_bytes(folder.file("thesis/chapters/1.txt"), "mine");
  for (const bool link : {false, true}) {
    INFO("a link: " << link);
    if (link) {
      fs::rename(o.output + ".partial", folder.file("thesis"));
      fs::create_directory_symlink(folder.file("thesis"), o.output + ".partial");
    } else {
      fs::rename(folder.file("thesis"), o.output + ".partial");
    }
    const auto before = hashes(o.output + ".partial");
    REQUIRE(before.size() == 1);
    CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), o.output + ".partial: expected"));
    CHECK(hashes(o.output + ".partial") == before);
    CHECK_FALSE(fs::exists(o.output));
  }
}

TEST_CASE("the folder of a run that has the name of the work stays") {
  const TemporaryFolder folder;
  const TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  const std::string run_folder = o.output + ".partial";
  fs::create_directories(run_folder + "/checkpoints/step-40");
  for (const char* name : {".lock", "config.json", "metrics.jsonl", "checkpoints/step-40/a"}) {
    write_bytes(run_folder + "/" + name, "123");
  }
  for (const bool journal : {false, true}) {
    if (journal) write_bytes(run_folder + "/progress.json", "{\"step\": 40}\n");
    const auto before = hashes(run_folder);
    const std::string message = error_of(ExitCode::io, [&] { run(o); });
    INFO(message);
    CHECK(contains(message, run_folder));
    CHECK(contains(message, "choose another --output"));
    CHECK_FALSE(contains(message, "remove"));
    CHECK(hashes(run_folder) == before);
    CHECK_FALSE(fs::exists(o.output));
  }
}

TEST_CASE("an empty output folder is taken, a file is not") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  fs::create_directory(o.output);
  run(o);
  CHECK(fs::exists(o.output + "/train/manifest.json"));
  o.output = folder.file("file");
  write_bytes(o.output, "x");
  o.overwrite = true;
  error_of(ExitCode::io, [&] { run(o); });
  CHECK(read_bytes(o.output) == "x");
}

TEST_CASE("a failing run with --overwrite leaves the former set as it was") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "the road\n", DocumentKind::line);
  run(o);
  const auto before = hashes(o.output);
  o.overwrite = true;
  write_bytes(o.input.paths[0], "the hills\n\xFF\n");
  error_of(ExitCode::data, [&] { run(o); });
  CHECK(hashes(o.output) == before);
  CHECK(folder.entries() == 3);
}

TEST_CASE("text that leaves a set without a document is refused") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "\n \n\n", DocumentKind::line);
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "visible"));
  write_bytes(o.input.paths[0], "a\nb\n");
  for (int64_t documents : {2, 3}) {
    o.validation.documents = documents;
    CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "2 documents"));
  }
  o.validation = {0, 1e-6};
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "--val-documents"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a tokenizer without a BOS is refused") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "a\n", DocumentKind::line);
  auto settings = llama_settings();
  settings["bos_id"] = "-1";
  write_bytes(o.tokenizer, trained_model(settings));
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "BOS"));
}

TEST_CASE("a tokenizer with a name that cannot stand next to shards is refused") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "a road\n", DocumentKind::line);
  for (const auto& [name, fault] : std::vector<std::pair<std::string, std::string>>{
           {"000000.bin", "*.bin are shards"},
           {"manifest.json", "the manifest has this name"},
           {".t.model", "a hidden file"},
           {"t\xFF.model", "not valid UTF-8"},
           {std::string(201, 't'), "longer than 200 bytes"}}) {
    const std::string path = folder.file(name);
    fs::rename(o.tokenizer, path);
    o.tokenizer = path;
    const std::string message = error_of(ExitCode::usage, [&] { run(o); });
    CHECK(contains(message, "cannot be copied next to the shards: " + fault + "; rename the file"));
    CHECK(folder.entries() == 2);
  }
}

TEST_CASE("a file next to shards that their manifest does not name is nothing to overwrite") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "a road\n", DocumentKind::line);
  run(o);
  o.overwrite = true;
  const std::string mine = o.output + "/train/mine.model";
  write_bytes(mine, read_bytes(o.tokenizer));
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "found train/mine.model"));
  fs::remove(mine);
  run(o);
}

TEST_CASE("a missing second input is found before the first is read") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, "\xFF\n", DocumentKind::line);
  o.input.paths.push_back(folder.file("none.txt"));
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "none.txt"));
}

}  // namespace
}  // namespace bamtrain
