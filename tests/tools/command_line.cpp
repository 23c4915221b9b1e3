// The built program: its exit codes, messages, pipes and signals.

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

/// The built bamdata; empty (with a message) if the environment does not name it.
std::string program() {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const std::string path = std::string(build ? build : "") + "/data_tools/bamdata";
  if (build && ::access(path.c_str(), X_OK) == 0) return path;
  std::printf("skipped: BAMTRAIN_BUILD names no build with bamdata\n");
  return "";
}

struct ShellResult {
  int code;
  std::string out, err;
};

/// Runs a shell command, with `$B` as the program and `$D` as the folder.
ShellResult shell(const TemporaryFolder& folder, const std::string& command) {
  const TemporaryFolder logs;
  ::setenv("B", program().c_str(), 1);
  ::setenv("D", folder.path().c_str(), 1);
  const int status = std::system(
      ("{ " + command + "; } > " + logs.file("out") + " 2> " + logs.file("err")).c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_bytes(logs.file("out")), read_bytes(logs.file("err"))};
}

TEST_CASE("text in, tokenizer, shards, verified and shown: every command by its name") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  std::string text;
  for (const std::string& s : sample_sentences()) text += s + "\n\n";
  write_bytes(folder.file("in.txt"), text);
  ShellResult r = shell(folder,
                        "$B train-tokenizer --vocab 450 --document blank-line --output $D/t.model "
                        "$D/in.txt");
  INFO(r.err);
  REQUIRE(r.code == 0);
  r = shell(folder,
            "$B tokenize --tokenizer $D/t.model --document blank-line --val-documents 16 "
            "--threads 2 --eos --output $D/set $D/in.txt");
  REQUIRE(r.code == 0);
  CHECK(contains(r.out, "200 documents"));
  CHECK(contains(r.out, "16 documents"));
  CHECK(r.err.empty());  // not a terminal, and short
  r = shell(folder, "$B verify --tokenizer $D/t.model $D/set");
  CHECK(r.code == 0);
  r = shell(folder, "$B inspect --json --count 5 $D/set/val");
  REQUIRE(r.code == 0);
  const auto set = nlohmann::json::parse(r.out)["sets"][0];
  CHECK(set["documents"]["count"] == 16);
  CHECK(set["slice"].contains("text"));
}

TEST_CASE("a byte-level BPE is trained elsewhere, and makes shards here") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  ::setenv("T", (std::string(source ? source : ".") + "/tests/data/tokenizers").c_str(), 1);
  write_bytes(folder.file("in.txt"), "The other mother.\nIn 1998 <|endoftext|> there\n");
  ShellResult r = shell(folder, "$B train-tokenizer --kind bpe --output $D/t.json $D/in.txt");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "pip install tokenizers"));
  r = shell(folder,
            "$B tokenize --tokenizer $T/gpt2.json --document line --output $D/set $D/in.txt");
  INFO(r.err);
  REQUIRE(r.code == 0);
  r = shell(folder, "$B inspect --json --count 5 --tokenizer $T/gpt2.json $D/set/train");
  REQUIRE(r.code == 0);
  // No document can forge the start of another.
  const auto set = nlohmann::json::parse(r.out)["sets"][0];
  CHECK(set["documents"]["count"] == 2);
  r = shell(folder, "$B verify --tokenizer $T/gpt2.json $D/set");
  CHECK(r.code == 0);
  r = shell(folder,
            "$B tokenize --tokenizer $T/gpt2.json --eos --document line --output $D/e "
            "$D/in.txt");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "<|endoftext|> for both"));
}

TEST_CASE("an output that a shell was to replace is refused, and no such folder is made") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a road\n");
  const std::string tokenize =
      "cd $D && $B tokenize --tokenizer $D/small.model --document line $D/in.txt --output=";
  for (const std::string output : {"'~/set'", "'$NAME/set'", "s3://bucket/set"}) {
    const ShellResult r = shell(folder, tokenize + output);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "--output: expected "));
  }
  CHECK(shell(folder, "cd $D && $B join --output='~/all' $D/set").code == 2);
  for (const char* name : {"~", "$NAME", "s3:"}) {
    CHECK_FALSE(std::filesystem::exists(folder.file(name)));
  }
}

TEST_CASE("standard input is read, and a cut-off pipe of bad JSON leaves nothing") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  const std::string tokenize =
      "$B tokenize --tokenizer $D/small.model --format jsonl --output $D/set -";
  ShellResult r =
      shell(folder, "printf '{\"text\": \"a road\"}\\n{\"text\": \"b\"}\\n' | " + tokenize);
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "2 documents"));
  r = shell(folder,
            "printf '{\"text\": \"a road\"}\\n{\"text\": \"b' | " + tokenize + " --overwrite");
  CHECK(r.code == 4);
  CHECK(contains(r.err, "bamdata: -:2:11: invalid JSON"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a slip in a subcommand or an option is answered with the nearest one") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  CHECK(contains(shell(folder, "$B tokenise x").err, "did you mean tokenize?"));
  CHECK(contains(shell(folder, "$B inspct x").err, "did you mean inspect?"));
  CHECK(contains(shell(folder, "$B infoo").err, "did you mean inspect?"));
  CHECK(contains(shell(folder, "$B synth revers").err, "did you mean reverse?"));
  CHECK(contains(shell(folder, "$B inspect --cuont 3 x").err, "did you mean --count?"));
  CHECK_FALSE(contains(shell(folder, "$B no-such-command").err, "did you mean"));
}

TEST_CASE("memory that runs out is told as such, with 9") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  const ShellResult r = shell(folder,
                              "ulimit -v 500000; head -c 600000000 /dev/zero | tr '\\0' a | "
                              "$B tokenize --tokenizer $D/small.model --format txt --document file "
                              "--max-document-bytes 1000000000 --threads 1 --output $D/set -");
  INFO(r.err);
  CHECK(r.code == 9);
  CHECK(contains(r.err, "bamdata: memory: allocation failed ("));
  CHECK(contains(r.err, "lower --max-document-bytes or --threads"));
}

TEST_CASE("exit codes tell usage, data and file errors apart, and messages begin with the name") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a\nb\n");
  write_bytes(folder.file("bad.txt"), "a\xFF\n");
  const std::string tokenize =
      "$B tokenize --document line --tokenizer $D/small.model --output $D/set ";
  const std::vector<std::pair<std::string, int>> cases = {
      {"$B --help", 0},
      {"$B --version", 0},
      {"$B tokenize --help", 0},
      {"$B", 2},
      {"$B no-such-command", 2},
      {"$B tokenize", 2},
      {tokenize + "--no-such-option $D/in.txt", 2},
      {tokenize + "--threads 0 $D/in.txt", 2},
      {tokenize + "--val-documents 1 --val-fraction 0.1 $D/in.txt", 2},
      {tokenize + "--val-fraction 1.5 $D/in.txt", 2},
      {tokenize + "--document paragraph $D/in.txt", 2},
      {tokenize + "- < $D/in.txt", 2},
      {tokenize + "$D/small.model", 2},
      {tokenize + "$D/bad.txt", 4},
      {tokenize + "$D/none.txt", 6},
      {tokenize + "--tokenizer $D/in.txt $D/in.txt", 2},  // the same file twice
      {"$B tokenize --document line --tokenizer $D/in.txt --output $D/set $D/in.txt", 4},
      {"$B tokenize --document line --tokenizer $D/none --output $D/set $D/in.txt", 6},
      {"$B tokenize --document line --tokenizer $D/small.model --output $D $D/in.txt", 6},
      {"$B tokenize --document line --tokenizer $D/small.model --output /dev/null/x $D/in.txt", 6},
      {"$B inspect $D/none", 4},
      {"$B verify $D", 4},
      {"$B inspect --document-start 1 $D/in.txt", 4},
  };
  for (const auto& [command, code] : cases) {
    const ShellResult r = shell(folder, command);
    INFO(command << "\n" << r.err);
    CHECK(r.code == code);
    if (code > 2) CHECK(r.err.starts_with("bamdata: "));
    if (code != 0) CHECK_FALSE(r.err.empty());
  }
  CHECK(folder.entries() == 3);
}

TEST_CASE("Ctrl-C ends tokenize by that signal and leaves nothing") {
  const std::string bamdata = program();
  if (bamdata.empty()) return;
  for (int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder, logs;
    const std::string model = small_tokenizer(folder);
    const int watch = ::inotify_init1(IN_CLOEXEC);
    REQUIRE(watch >= 0);
    REQUIRE(::inotify_add_watch(watch, folder.path().c_str(), IN_CREATE) >= 0);
    int text[2];
    REQUIRE(::pipe2(text, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // ignored if the tests run in the background of a script
      ::dup2(text[0], STDIN_FILENO);
      ::dup2(::open(logs.file("err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      const std::string out = folder.file("set");
      ::execl(bamdata.c_str(), "bamdata", "tokenize", "--tokenizer", model.c_str(), "--format",
              "txt", "--document", "line", "--output", out.c_str(), "-", nullptr);
      ::_exit(127);
    }
    ::close(text[0]);
    // The temporary folder appears once signals are handled; the input has not ended yet.
    char event[4096];
    REQUIRE(::read(watch, event, sizeof event) > 0);
    CHECK(folder.entries() == 2);
    REQUIRE(::write(text[1], "a road\n", 7) == 7);
    REQUIRE(::kill(child, signal) == 0);
    ::close(text[1]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ::close(watch);
    INFO(read_bytes(logs.file("err")));
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(folder.entries() == 1);
    CHECK(contains(read_bytes(logs.file("err")), "nothing was written"));
  }
}

TEST_CASE("a full disk is an error of files that leaves nothing") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  std::string text;
  for (int i = 0; i < 300; ++i) text += sample_sentences()[static_cast<size_t>(i) % 216] + "\n";
  write_bytes(folder.file("in.txt"), text);
  // A limit on file sizes stands for a full disk.
  const ShellResult r = shell(folder,
                              "ulimit -f 1; $B tokenize --document line --tokenizer "
                              "$D/small.model --output $D/set $D/in.txt");
  INFO(r.err);
  CHECK(r.code == 6);
  CHECK(contains(r.err, "bamdata: "));
  CHECK(contains(r.err, "000000.bin"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("what a run left that was killed before its first checkpoint is no hindrance") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a road\n");
  const std::string tokenize =
      "$B tokenize --tokenizer $D/small.model --format txt --document line --output $D/set ";
  // A named pipe without a writer: killed once its folder contains the first set.
  ShellResult r =
      shell(folder, "mkfifo $D/pipe; " + tokenize +
                        "- <> $D/pipe & child=$!; "
                        "while [ ! -d $D/set.partial/output/train ]; do kill -0 $child || exit 1; "
                        "done; kill -KILL $child; wait $child; rm $D/pipe");
  REQUIRE(std::filesystem::exists(folder.file("set.partial")));
  r = shell(folder, tokenize + "$D/in.txt");
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.err == "");
  CHECK(folder.entries() == 3);
}

TEST_CASE("output that does not arrive is an error of files") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a road\n");
  for (const std::string command :
       {"$B --help", "$B tokenize --help",
        "$B tokenize --document line --tokenizer $D/small.model --output $D/set $D/in.txt",
        "$B inspect --json $D/set/train"}) {
    const ShellResult r = shell(folder, command + " > /dev/full");
    INFO(command << "\n" << r.err);
    CHECK(r.code == 6);
    CHECK(contains(r.err, "bamdata: standard output: write failed"));
    CHECK(contains(r.err, "No space left"));
  }
}

TEST_CASE("too small a stack is raised, or an error that says so") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a road\n");
  const std::string tokenize =
      "$B tokenize --document line --tokenizer $D/small.model --overwrite --output $D/set "
      "--threads 2 $D/in.txt";
  CHECK(shell(folder, "ulimit -S -s 64; " + tokenize).code == 0);
  const ShellResult r = shell(folder, "ulimit -s 64; " + tokenize);
  INFO(r.err);
  CHECK(r.code == 9);
  CHECK(contains(r.err, "bamdata: stack: expected at least 256 KiB, found 64 KiB"));
  CHECK(contains(r.err, "ulimit -s 8192"));
}

TEST_CASE("notes that find no place change neither the result nor the exit code") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  std::string text;
  for (const std::string& s : sample_sentences()) text += s + "\n";
  write_bytes(folder.file("in.txt"), text + " = T = \n = T = \n = T = \n");
  write_bytes(folder.file("bad.txt"), "a\xFF\n");
  const std::string train =
      "$B train-tokenizer --vocab 450 --document file --overwrite --output $D/t.model ";
  const ShellResult heard = shell(folder, train + "$D/in.txt");
  REQUIRE(heard.code == 0);
  REQUIRE(contains(heard.err, "warning: "));
  REQUIRE(contains(heard.err, "training on "));
  const std::string model = read_bytes(folder.file("t.model"));
  for (const std::string nowhere : {" 2> /dev/full", " 2>&-"}) {
    CHECK(shell(folder, train + "$D/in.txt" + nowhere).code == 0);
    CHECK(read_bytes(folder.file("t.model")) == model);
    CHECK(shell(folder,
                "$B tokenize --document file --tokenizer $D/t.model --overwrite --output "
                "$D/set $D/in.txt" +
                    nowhere)
              .code == 0);
    // The same for errors that cannot be printed.
    CHECK(shell(folder, train + "$D/bad.txt" + nowhere).code == 4);
  }
}

TEST_CASE("what was printed before an error stands before it") {
  if (program().empty()) return;
  const TemporaryFolder folder;
  small_tokenizer(folder);
  write_bytes(folder.file("in.txt"), "a road\n");
  REQUIRE(shell(folder,
                "$B tokenize --document line --tokenizer $D/small.model --output $D/set $D/in.txt; "
                "cp $D/set/train/000000.bin $D/set/train/other.bin")
              .code == 0);
  const ShellResult r = shell(folder, "$B verify $D/set 2>&1");
  INFO(r.out);
  CHECK(r.code == 4);
  REQUIRE(contains(r.out, "other.bin: not in the manifest"));
  REQUIRE(contains(r.out, "bamdata: "));
  CHECK(r.out.find("other.bin: not in") < r.out.find("bamdata: "));
}

}  // namespace
}  // namespace bamtrain
