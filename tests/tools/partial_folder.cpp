#include "data_tools/partial_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "data_tools/shard_folders.h"
#include "tools/killed_process.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

void fill_partial(const PartialFolder& folder, const std::string& content) {
  fs::create_directories(folder.output() + "/train");
  write_bytes(folder.output() + "/train/000000.bin", content);
}

TEST_CASE("a folder takes its place and nothing else is left") {
  const TemporaryFolder folder;
  for (const std::string content : {"first", "second"}) {
    {
      PartialFolder partial(folder.file("set/"), may_replace_shards(true));
      CHECK(partial.path() == folder.file("set.partial"));
      fill_partial(partial, content);
      write_bytes(partial.path() + "/more", "");
      partial.keep();
      partial.commit();
    }
    CHECK(names_in(folder.path()) == Names{"set"});
    CHECK(names_in(folder.file("set")) == Names{"train"});
    CHECK(read_bytes(folder.file("set/train/000000.bin")) == content);
  }
}

TEST_CASE("what is kept is there for the next, all else goes, and the lock stays held meanwhile") {
  const TemporaryFolder folder;
  {
    PartialFolder partial(folder.file("set"), may_replace_shards(false));
    fill_partial(partial, "half");
    CHECK(contains(error_of(ExitCode::io,
                            [&] { PartialFolder(folder.file("set"), may_replace_shards(false)); }),
                   "set.partial: in use by"));
    CHECK(fs::exists(partial.output()));
  }
  CHECK(names_in(folder.path()).empty());
  {
    PartialFolder partial(folder.file("set"), may_replace_shards(false));
    fill_partial(partial, "half");
    partial.keep();
  }
  {
    PartialFolder partial(folder.file("set"), may_replace_shards(false));
    CHECK(read_bytes(partial.output() + "/train/000000.bin") == "half");
    partial.clear();
    CHECK_FALSE(fs::exists(partial.output()));
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a place that must not be replaced is found before anything is made") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("set/train"));
  write_bytes(folder.file("set/train/000000.bin"), "mine");
  CHECK(contains(
      error_of(ExitCode::io, [&] { PartialFolder(folder.file("set"), may_replace_shards(false)); }),
      "--overwrite"));
  CHECK(names_in(folder.path()) == Names{"set"});
}

TEST_CASE("what another program made under the name of the work is refused, and stays") {
  const TemporaryFolder folder;
  const std::string partial = folder.file("set.partial");
  const auto refused = [&](const std::string& found) {
    INFO(found);
    const std::string message = error_of(
        ExitCode::io, [&] { PartialFolder(folder.file("set"), may_replace_shards(true)); });
    CHECK(contains(message, partial + ": expected no such folder yet, or a partial output of "));
    CHECK(contains(message, "found " + found));
  };
  fs::create_directories(folder.file("mine/notes"));
  write_bytes(folder.file("mine/notes/a.txt"), "notes");
  fs::create_directory_symlink(folder.file("mine"), partial);
  refused("a symbolic link");
  // Also a link to a folder with a lock: what it points to may be unrelated work.
  write_bytes(folder.file("mine/.lock"), "");
  refused("a symbolic link");
  fs::remove(folder.file("mine/.lock"));
  fs::remove(partial);
  fs::create_directory_symlink(folder.file("nowhere"), partial);
  refused("a symbolic link");
  fs::remove(partial);
  write_bytes(partial, "mine");
  refused("a file");
  CHECK(read_bytes(partial) == "mine");
  fs::remove(partial);
  fs::rename(folder.file("mine"), partial);
  refused("a folder with notes, without .lock and progress.json");
  CHECK(names_in(partial) == Names{"notes"});
  CHECK(read_bytes(partial + "/notes/a.txt") == "notes");
  fs::remove_all(partial);
  CHECK_FALSE(PartialFolder::is_one(partial));
  fs::create_directory(partial);
  CHECK(PartialFolder::is_one(partial));
  write_bytes(partial + "/.lock", "");
  CHECK(PartialFolder::is_one(partial));
}

/// Makes the file, or the folder if the name ends with a slash, and the folders above it.
void make_entry(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  if (!path.ends_with('/')) write_bytes(path, "mine");
}

TEST_CASE("a folder with a lock is the work's only where it holds no other names") {
  const TemporaryFolder folder;
  const std::string partial = folder.file("set.partial"), lock = partial + "/.lock";
  const auto has = [&](const Names& names) {
    fs::remove_all(partial);
    fs::create_directory(partial);
    write_bytes(lock, "123");
    for (const std::string& name : names) make_entry(partial + "/" + name);
  };
  for (const std::string foreign : {"run.json",
                                    "metrics.jsonl",
                                    "train/",
                                    "manifest.json",
                                    "000000.bin",
                                    "output.txt",
                                    "000",
                                    "progress.json.tmp-abcdefgh",
                                    "progress.json/",
                                    "held/",
                                    "output",
                                    "output/a.txt",
                                    "output/val",
                                    "output/train/a.txt",
                                    "output/train/train/",
                                    "output/train/.bin/",
                                    "output/train/progress.json",
                                    "shuffle",
                                    "shuffle/256",
                                    "shuffle/0",
                                    "shuffle/00a",
                                    "shuffle/000/"}) {
    INFO(foreign);
    has({foreign});
    const std::string message = error_of(
        ExitCode::io, [&] { PartialFolder(folder.file("set"), may_replace_shards(true)); });
    const std::string name = foreign.substr(0, foreign.find_last_not_of('/') + 1);
    const std::string above = foreign.substr(0, foreign.find('/'));
    INFO(message);
    CHECK((contains(message, "found a folder with " + name + ", which it does not make") ||
           (above == "train" && contains(message, "found a folder with train,"))));
    CHECK(contains(message, "; move it elsewhere, or choose another --output"));
    CHECK(fs::exists(partial + "/" + foreign));
    CHECK(read_bytes(lock) == "123");
  }
  has({});
  fs::create_symlink(lock, partial + "/held");
  CHECK(contains(error_of(ExitCode::io, [&] { PartialFolder::is_one(partial); }), "with held,"));

  has({"held", "shuffle/000", "shuffle/255", "output/part.json", "output/train/manifest.json",
       "output/train/000000.bin", "output/val/web-1.bin"});
  CHECK(PartialFolder::is_one(partial));
  { PartialFolder(folder.file("set"), may_replace_shards(true)); }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a tokenizer's file is the work's own where the manifest next to it names it") {
  const TemporaryFolder folder;
  const std::string partial = folder.file("set.partial"), train = partial + "/output/train/";
  fs::create_directories(train);
  fs::create_directories(partial + "/output/val");
  write_bytes(partial + "/.lock", "");
  Manifest m;
  m.tokenizer_file = "t.model";
  m.tokenizer_sha256 = std::string(64, 'a');
  m.vocab = 2;
  write_manifest(train + "manifest.json", m);
  write_bytes(train + "t.model", "");
  CHECK(PartialFolder::is_one(partial));
  const auto commit = [&] {
    AtomicFile file(train + "t.model");
    file.commit();
  };
  for (int n = 0; names_in(train).size() == 2; ++n) REQUIRE(dies_before(n, commit));
  CHECK(PartialFolder::is_one(partial));  // with the file of a killed process
  for (const char* foreign : {"train/u.model", "train/t.model.tmp-abcdefgh", "val/t.model"}) {
    write_bytes(partial + "/output/" + foreign, "");
    CHECK(contains(error_of(ExitCode::io, [&] { PartialFolder::is_one(partial); }),
                   std::string("a folder with output/") + foreign));
    fs::remove(partial + "/output/" + foreign);
  }
  write_bytes(train + "manifest.json", "{");
  CHECK(contains(error_of(ExitCode::io, [&] { PartialFolder::is_one(partial); }), "t.model"));
}

TEST_CASE("the file that a killed process leaves of a journal or manifest is the work's own") {
  const TemporaryFolder folder;
  const std::string partial = folder.file("set.partial");
  for (const std::string name :
       {"progress.json", "output/part.json", "output/train/manifest.json"}) {
    INFO(name);
    fs::remove_all(partial);
    fs::create_directories(partial + "/output/train");
    write_bytes(partial + "/.lock", "");
    // During `commit`, it has a name on every file system.
    const auto commit = [&] {
      AtomicFile file(partial + "/" + name);
      file.commit();
    };
    const std::string place = fs::path(partial + "/" + name).parent_path().string();
    const size_t before = names_in(place).size();
    for (int n = 0; names_in(place).size() == before; ++n) REQUIRE(dies_before(n, commit));
    CHECK_FALSE(fs::exists(partial + "/" + name));
    CHECK(PartialFolder::is_one(partial));
  }
}

TEST_CASE("another program's progress.json is refused by what it holds, and stays") {
  const TemporaryFolder folder;
  const std::string partial = folder.file("set.partial");
  fs::create_directory(partial);
  for (const bool lock : {false, true}) {
    if (lock) write_bytes(partial + "/.lock", "123");
    for (const std::string content :
         {"", "half", "[]", "{\"step\": 3}", "{\"format\": 1}", "{\"format\": 2}"}) {
      INFO(content);
      write_bytes(partial + "/progress.json", content);
      const std::string message = error_of(
          ExitCode::io, [&] { PartialFolder(folder.file("set"), may_replace_shards(true)); });
      INFO(message);
      CHECK(contains(message, partial + "/progress.json:"));
      CHECK(contains(message,
                     "not a journal of `bamdata tokenize`: move its folder elsewhere, or "
                     "choose another --output"));
      CHECK_FALSE(contains(message, "remove"));
      CHECK(read_bytes(partial + "/progress.json") == content);
      CHECK((!lock || read_bytes(partial + "/.lock") == "123"));
    }
  }
}

TEST_CASE("wherever a process is killed that commits, the place has a whole set") {
  static int left = 0;  // operations before the process is killed
  int n = 0;
  for (bool died = true; died; ++n) {
    INFO("killed before operation " << n);
    const TemporaryFolder folder;
    fs::create_directories(folder.file("set/train"));
    write_bytes(folder.file("set/train/000000.bin"), "former");
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      PartialFolder partial(folder.file("set"), may_replace_shards(true));
      fill_partial(partial, "new");
      partial.keep();
      left = n;
      set_file_fault([](FileOp, const std::string&, const std::string&) {
        if (left-- == 0) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      partial.commit();
      partial.clear();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    died = WIFSIGNALED(status);
    const std::string content = read_bytes(folder.file("set/train/000000.bin"));
    CHECK((content == "former" || content == "new"));
    CHECK((died || content == "new"));
    if (content == "former") {
      CHECK(read_bytes(folder.file("set.partial/output/train/000000.bin")) == "new");
    }
  }
  CHECK(n > 3);
}

}  // namespace
}  // namespace bamtrain
