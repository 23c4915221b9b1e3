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
                   "set.partial: expected a folder that no other run is using"));
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
    CHECK(contains(message, partial + ": expected nothing yet"));
    CHECK(contains(message, "found " + found));
  };
  fs::create_directories(folder.file("mine/notes"));
  write_bytes(folder.file("mine/notes/a.txt"), "notes");
  fs::create_directory_symlink(folder.file("mine"), partial);
  refused("a symbolic link");
  // The link of one that has a lock, too: what is behind it may be any other work.
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
  // Either of the two files is the work's own, and so is a folder in which nothing is yet.
  for (const char* name : {".lock", "progress.json"}) {
    write_bytes(partial + "/" + name, "");
    CHECK(PartialFolder::is_one(partial));
    fs::remove(partial + "/" + name);
  }
  fs::remove_all(partial);
  CHECK_FALSE(PartialFolder::is_one(partial));
  fs::create_directory(partial);
  CHECK(PartialFolder::is_one(partial));
}

TEST_CASE("wherever a process is killed that commits, the place has a whole set") {
  static int left = 0;  // operations until the process is killed
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
