// Work that one process begins and others finish.

#include "data_tools/tokenize_output.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "core/durable_file.h"
#include "tools/killed_process.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

constexpr int kLines = 4000;  // four batches

/// Writes a checkpoint after each batch.
TokenizeOptions small_steps(const TemporaryFolder& folder) {
  TokenizeOptions o = options_for(folder, numbered_lines(kLines), DocumentKind::line);
  o.checkpoint_seconds = 0;
  o.shard_tokens = 30'000;
  o.threads = 2;
  return o;
}

/// The number of file operations that a process has done.
int g_done = 0;

/// Whether the process was killed before operation number `n`; false if it had ended.
bool run_dies_before(const TokenizeOptions& o, int n) {
  return dies_before(n, [&] { run(o); });
}

TEST_CASE("wherever a process is killed, the next ones go on to the same bytes") {
  const TemporaryFolder folder, undisturbed;
  TokenizeOptions o = small_steps(folder), whole = small_steps(undisturbed);
  const auto set = [&](auto&& change) {
    change(o);
    change(whole);
  };
  int tries = 40;  // spread evenly over the operations
  SECTION("a fraction for validation") {
    set([](TokenizeOptions& x) { x.validation.fraction = 0.1; });
  }
  SECTION("a number of documents") {
    set([](TokenizeOptions& x) { x.validation.documents = 150; });
  }
  SECTION("the first tokens") {
    set([](TokenizeOptions& x) {
      x.validation.tokens = 40'000;
      x.validation.unused = 1'000;
    });
  }
  SECTION("shuffled, and replacing another set") {
    tries = 5;
    set([](TokenizeOptions& x) {
      x.shuffle = 5;
      x.validation.documents = 20;
      x.overwrite = true;
    });
    fs::create_directories(o.output + "/train");
    write_bytes(o.output + "/train/000000.bin", "former");
  }
  run(whole);
  const auto expected = hashes(whole.output);
  REQUIRE(expected.size() >= 3);
  set_file_fault([](FileOp, const std::string&, const std::string&) {
    ++g_done;
    return 0;
  });
  g_done = 0;
  const TemporaryFolder third;
  TokenizeOptions counted = o;
  counted.output = third.file("out");
  run(counted);
  set_file_fault(nullptr);
  REQUIRE(hashes(counted.output) == expected);
  REQUIRE(g_done > tries);
  for (int i = 0; i < tries; ++i) {
    const int n = i * g_done / tries;
    INFO("killed before operation " << n << " of " << g_done);
    const bool died = run_dies_before(o, n);
    if (died) {
      run_dies_before(o, g_done / 3);  // killed again on the way
      o.overwrite = true;              // in case it had finished but for its last messages
      run(o);
    }
    CHECK(hashes(o.output) == expected);
    CHECK(folder.entries() == 3);  // the text, the tokenizer and the output
    fs::remove_all(o.output);
  }
}

TEST_CASE("whatever a killed process leaves, the next one knows it for its own") {
  const TemporaryFolder folder;
  TokenizeOptions o = options_for(folder, numbered_lines(60), DocumentKind::line);
  o.shard_tokens = 1000;
  o.overwrite = true;
  o.checkpoint_seconds = 1000;  // no journal
  int unnamed = 0;
  SECTION("documents held for validation") { o.validation.documents = 20; }
  SECTION("a part of a set") {
    o.validation.fraction = 0.2;
    o.input.paths.push_back(folder.file("more.txt"));
    write_bytes(o.input.paths[1], numbered_lines(60));
    o.part = {1, 2};
  }
  SECTION("with journals, where every file has a name from the first") {
    o.checkpoint_seconds = 0;
    unnamed = EOPNOTSUPP;
  }
  run(o);
  const auto expected = hashes(o.output);
  bool died = true;
  for (int n = 0; died; ++n) {
    INFO("killed before operation " << n);
    fs::remove_all(o.output);
    fs::create_directories(o.output + "/val");
    write_bytes(o.output + "/val/web.bin", "former");
    died = dies_before(
        n, [&] { run(o); }, 0, unnamed);
    PartialFolder::is_one(o.output + ".partial");
    if (n % 8 == 0) run(o);
    if (n % 8 == 0 || !died) CHECK(hashes(o.output) == expected);
    fs::remove_all(o.output + ".partial");
    REQUIRE((!died || n < 1000));
  }
}

TEST_CASE("after an error in the text the work goes on, in another way with bad UTF-8 too") {
  const TemporaryFolder folder, other;
  TokenizeOptions o = small_steps(folder), whole = small_steps(other);
  std::string text = numbered_lines(kLines);
  text.insert(text.find("\n3800 ") + 1, "b\xFF\n");
  write_bytes(o.input.paths[0], text);
  write_bytes(whole.input.paths[0], text);
  error_of(ExitCode::data, [&] { run(o); });
  CHECK(fs::exists(folder.file("out.partial/progress.json")));
  // A checkpoint's bytes do not depend on what follows it.
  const std::string journal = read_bytes(folder.file("out.partial/progress.json"));
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "in.txt:3801"));
  CHECK(contains(journal, "\"documents_of_input\": "));

  whole.input.invalid_utf8 = InvalidUtf8::skip;
  run(whole);
  o.input.invalid_utf8 = InvalidUtf8::skip;
  const TokenizeReport report = run(o);
  CHECK(report.counts.skipped == 1);
  CHECK(report.train.documents == kLines);
  CHECK(report.text_bytes > static_cast<int64_t>(text.size() - kLines - 10));
  CHECK(hashes(o.output) == hashes(whole.output));
  CHECK(folder.entries() == 3);
}

TEST_CASE("what other options or inputs began is refused by name, and stays") {
  const TemporaryFolder folder;
  TokenizeOptions o = small_steps(folder);
  REQUIRE(run_dies_before(o, 40));
  const auto refused = [&](const std::string& name, auto&& change) {
    TokenizeOptions other = o;
    change(other);
    const std::string message = error_of(ExitCode::usage, [&] { run(other); });
    CHECK(contains(message, name + ": expected"));
    CHECK(contains(message, folder.file("out.partial") + " was started"));
    CHECK(contains(message, "remove the folder"));
  };
  refused("--tokenizer name", [&](TokenizeOptions& x) {
    x.tokenizer = folder.file("again.model");
    write_bytes(x.tokenizer, read_bytes(o.tokenizer));
  });
  refused("--shard-tokens", [](TokenizeOptions& x) { x.shard_tokens = 20'000; });
  refused("--eos", [](TokenizeOptions& x) { x.eos = true; });
  refused("--val-fraction", [](TokenizeOptions& x) { x.validation.fraction = 0.1; });
  refused("--shuffle", [](TokenizeOptions& x) { x.shuffle = 0; });
  refused("--document", [](TokenizeOptions& x) { x.input.kind = DocumentKind::blank_line; });
  refused("inputs", [&](TokenizeOptions& x) {
    write_bytes(folder.file("more.txt"), "more\n");
    x.input.paths.push_back(folder.file("more.txt"));
  });
  fs::last_write_time(o.input.paths[0], fs::file_time_type::clock::now() + std::chrono::hours(1));
  refused("input 1", [](TokenizeOptions&) {});
}

TEST_CASE("a journal of before it had the tokenizer's name is resumed") {
  const TemporaryFolder folder, undisturbed;
  const TokenizeOptions o = small_steps(folder), whole = small_steps(undisturbed);
  run(whole);
  REQUIRE(run_dies_before(o, 40));
  const std::string path = folder.file("out.partial/progress.json");
  auto journal = nlohmann::ordered_json::parse(read_bytes(path));
  REQUIRE(journal["settings"].erase("--tokenizer name") == 1);
  write_bytes(path, journal.dump());
  run(o);
  CHECK(hashes(o.output) == hashes(whole.output));
}

TEST_CASE("a damaged journal is refused, and so are shards that are not as it says") {
  const TemporaryFolder folder;
  TokenizeOptions o = small_steps(folder);
  REQUIRE(run_dies_before(o, 40));
  const std::string path = folder.file("out.partial/progress.json"), journal = read_bytes(path);
  REQUIRE(contains(journal, "\"finished\": \"\""));
  write_bytes(path, journal.substr(0, journal.size() / 2));
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "progress.json"));
  write_bytes(path, "{\"format\": 2}");
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "progress.json: format"));
  write_bytes(path, journal);
  const std::string shard = folder.file("out.partial/output/train/000000.bin");
  const std::string bytes = read_bytes(shard);
  write_bytes(shard, bytes.substr(0, 2000));
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }), "000000.bin"));
  write_bytes(shard, bytes);
  run(o);
  CHECK(folder.entries() == 3);
}

TEST_CASE("a process that is killed when the output has its place leaves nothing for long") {
  const TemporaryFolder folder;
  TokenizeOptions o = small_steps(folder);
  for (const bool replaces : {false, true}) {
    if (replaces) {
      o.overwrite = true;
      o.shard_tokens = 20'000;
    }
    static std::string parent;
    parent = folder.path();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      set_file_fault([](FileOp op, const std::string& path, const std::string&) {
        if (op == FileOp::sync_folder && path == parent && fs::exists(parent + "/out/train")) {
          if (fs::exists(parent + "/out.partial/progress.json")) ::kill(::getpid(), SIGKILL);
        }
        return 0;
      });
      run(o);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const Manifest made = read_manifest(o.output + "/train/manifest.json");
    CHECK(made.shards.size() > (replaces ? 6 : 3));
    CHECK(fs::exists(folder.file("out.partial")));
    o.overwrite = false;
    CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "--overwrite"));
    CHECK_FALSE(fs::exists(folder.file("out.partial")));
    CHECK(read_manifest(o.output + "/train/manifest.json") == made);
  }
}

TEST_CASE("a process that is killed as it cleans up leaves nothing for long") {
  static std::string partial;
  static int before_it;  // removals done before the kill
  int kills = 0;
  for (bool killed = true; killed; ++kills) {
    const TemporaryFolder folder;
    TokenizeOptions o = small_steps(folder);
    partial = folder.file("out.partial");
    before_it = kills;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      set_file_fault([](FileOp op, const std::string& path, const std::string&) {
        const bool at_place = !fs::exists(partial + "/output") && fs::exists(partial + "/../out");
        if (op == FileOp::remove && path.starts_with(partial) && at_place) {
          if (before_it-- == 0) ::kill(::getpid(), SIGKILL);
        }
        return 0;
      });
      run(o);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    killed = WIFSIGNALED(status);
    INFO("killed before removal " << kills);
    CHECK(fs::exists(partial) == killed);
    CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "--overwrite"));
    CHECK_FALSE(fs::exists(partial));
  }
  CHECK(kills > 3);  // the journal, the lock, the folder, and once to the end
}

TEST_CASE("of an input that nobody can read again nothing is kept") {
  const TemporaryFolder folder;
  TokenizeOptions o = small_steps(folder);
  REQUIRE(::mkfifo(folder.file("pipe.txt").c_str(), 0600) == 0);
  o.input.paths = {folder.file("pipe.txt")};
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::ofstream(folder.file("pipe.txt")) << numbered_lines(kLines) << "b\xFF\n";
    ::_exit(0);
  }
  error_of(ExitCode::data, [&] { run(o); });
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(folder.entries() == 3);  // the text, the tokenizer and the pipe
}

TEST_CASE("a file of others beside the journal is refused by name, and stays") {
  const TemporaryFolder folder;
  const TokenizeOptions o = small_steps(folder);
  REQUIRE(run_dies_before(o, 40));
  const std::string partial = folder.file("out.partial");
  REQUIRE(std::filesystem::exists(partial + "/progress.json"));
  write_bytes(partial + "/notes.txt", "mine");
  const std::string message = error_of(ExitCode::io, [&] { run(o); });
  CHECK(contains(message, "found a folder with notes.txt, which it does not make"));
  CHECK(read_bytes(partial + "/notes.txt") == "mine");
  std::filesystem::remove(partial + "/notes.txt");
  // Otherwise the shards would be written through the link.
  std::filesystem::rename(partial + "/output", folder.file("else"));
  std::filesystem::create_directory_symlink(folder.file("else"), partial + "/output");
  CHECK(contains(error_of(ExitCode::io, [&] { run(o); }), "found a folder with output,"));
  std::filesystem::remove(partial + "/output");
  std::filesystem::rename(folder.file("else"), partial + "/output");
  run(o);
}

TEST_CASE("an output that ends with a dot is the folder before it") {
  const TemporaryFolder folder;
  TokenizeOptions o = small_steps(folder);
  const std::string name = o.output;
  o.output = name + "/.";
  run(o);
  CHECK(std::filesystem::exists(name + "/train"));
  CHECK_FALSE(std::filesystem::exists(name + ".partial"));
}

}  // namespace
}  // namespace bamtrain
