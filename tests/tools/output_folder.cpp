// Which folders an OutputFolder creates, replaces and removes. For whole runs, see
// tokenize_failures.cpp.

#include "core/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

/// Writes train/000000.bin with `content` into the folder.
void fill_output(const OutputFolder& output, const std::string& content) {
  write_bytes(output.subfolder("train") + "/000000.bin", content);
}

/// Kills a process that has made an OutputFolder. Returns the folder that it leaves.
std::string killed_run(const std::string& path) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    OutputFolder output(path, may_replace_shards(false));
    fill_output(output, "half of");
    if (::write(ends[1], output.path().data(), output.path().size()) < 0) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  char name[4096];
  const ssize_t n = ::read(ends[0], name, sizeof name);
  ::close(ends[0]);
  REQUIRE(n > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  return {name, static_cast<size_t>(n)};
}

TEST_CASE("a symbolic link as the output's name is followed, to a folder that is or will be") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("elsewhere"));
  fs::create_symlink("elsewhere", folder.file("to-empty"));
  fs::create_symlink("elsewhere/new", folder.file("to-nothing"));
  for (const std::string& name : {std::string("to-nothing"), std::string("to-empty")}) {
    if (name == "to-empty") fs::remove_all(folder.file("elsewhere/new"));
    OutputFolder output(folder.file(name), may_replace_shards(false));
    fill_output(output, name);
    output.commit();
    CHECK(fs::is_symlink(folder.file(name)));
    CHECK(read_bytes(folder.file(name) + "/train/000000.bin") == name);
  }
}

TEST_CASE("a committed folder holds what was put into it and nothing else") {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(0027);
  {
    OutputFolder output(folder.file("set"), may_replace_shards(false));
    fill_output(output, "new");
    output.commit();
  }
  ::umask(mask);
  CHECK(names_in(folder.path()) == Names{"set"});
  CHECK(names_in(folder.file("set")) == Names{"train"});
  CHECK(read_bytes(folder.file("set/train/000000.bin")) == "new");
  CHECK(static_cast<int>(fs::status(folder.file("set")).permissions()) == 0750);
}

TEST_CASE("what a killed process left is removed and named, by an output of the same name only") {
  const TemporaryFolder folder;
  const std::string leftover = killed_run(folder.file("set"));
  REQUIRE(fs::exists(leftover + "/train/000000.bin"));
  {
    CHECK(
        OutputFolder(folder.file("other"), may_replace_shards(false)).removed_leftovers().empty());
  }
  { CHECK(OutputFolder(folder.file("se"), may_replace_shards(false)).removed_leftovers().empty()); }
  CHECK(fs::exists(leftover));
  {
    const OutputFolder output(folder.file("set"), may_replace_shards(false));
    CHECK(output.removed_leftovers() == Names{leftover});
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("the folder of a living process stays, whichever ends first") {
  const TemporaryFolder folder;
  OutputFolder first(folder.file("set"), may_replace_shards(true));
  fill_output(first, "first");
  {
    OutputFolder second(folder.file("set"), may_replace_shards(true));
    CHECK(second.removed_leftovers().empty());
    fill_output(second, "second");
    second.commit();
  }
  CHECK(read_bytes(folder.file("set/train/000000.bin")) == "second");
  first.commit();
  CHECK(read_bytes(folder.file("set/train/000000.bin")) == "first");
  CHECK(names_in(folder.path()) == Names{"set"});
}

TEST_CASE("a folder of another name than a leftover's stays, and so does what is no folder") {
  const TemporaryFolder folder;
  const std::string prefix = OutputFolder::temporary_prefix(folder.file("set"));
  fs::rename(killed_run(folder.file("set")), folder.file("elsewhere"));
  for (const std::string& name : {folder.file("set.tmp-abcdef"), folder.file("set.former-abcdef"),
                                  folder.file("set.tmp-00000000-abcdef"),  // another machine's
                                  prefix + "abc", prefix + "abcdefg"}) {
    fs::copy(folder.file("elsewhere"), name, fs::copy_options::recursive);
  }
  write_bytes(prefix + "123456", "a file");
  fs::create_directory_symlink("elsewhere", prefix + "000000");
  const Names before = names_in(folder.path());
  {
    CHECK(OutputFolder(folder.file("set"), may_replace_shards(false)).removed_leftovers().empty());
  }
  CHECK(names_in(folder.path()) == before);
  CHECK(fs::exists(folder.file("elsewhere/train/000000.bin")));
}

TEST_CASE("wherever a process is killed, the next leaves one whole set and nothing else") {
  const bool exchanges = GENERATE(true, false);
  int n = 0;
  for (bool died = true; died; ++n) {
    INFO("killed before operation " << n << (exchanges ? "" : ", names are not exchanged"));
    const TemporaryFolder folder;
    fs::create_directories(folder.file("set/train"));
    write_bytes(folder.file("set/train/000000.bin"), "former");
    const auto replace = [&] {
      OutputFolder output(folder.file("set"), may_replace_shards(true));
      fill_output(output, "new");
      output.commit();
    };
    died = dies_before(n, replace, exchanges ? 0 : EINVAL);
    { const OutputFolder next(folder.file("set"), may_replace_shards(true)); }
    Names names = names_in(folder.path());
    if (!exchanges) {
      // Between two renames, the former set has its own name.
      std::erase_if(names, [](const std::string& name) { return name.starts_with("set.former-"); });
      if (names.empty()) continue;
    }
    CHECK(names == Names{"set"});
    const std::string content = read_bytes(folder.file("set/train/000000.bin"));
    CHECK((content == "former" || content == "new"));
    CHECK((died || content == "new"));
  }
  CHECK(n > 4);
}

TEST_CASE("folders above an output are on the disk before anything is put into them") {
  static std::vector<std::pair<FileOp, std::string>> seen;
  seen.clear();
  const TemporaryFolder folder;
  set_file_fault([](FileOp op, const std::string& path, const std::string&) {
    seen.emplace_back(op, path);
    return 0;
  });
  { const OutputFolder output(folder.file("a/b/set"), may_replace_shards(false)); }
  set_file_fault(nullptr);
  REQUIRE(seen.size() > 4);
  seen.resize(4);
  CHECK(seen ==
        std::vector<std::pair<FileOp, std::string>>{{FileOp::make_folder, folder.file("a")},
                                                    {FileOp::sync_folder, folder.path()},
                                                    {FileOp::make_folder, folder.file("a/b")},
                                                    {FileOp::sync_folder, folder.file("a")}});
}

TEST_CASE("a set that another process put there meanwhile is not replaced unasked") {
  const TemporaryFolder folder;
  for (const bool overwrite : {false, true}) {
    {
      OutputFolder output(folder.file("set"), may_replace_shards(overwrite));
      fill_output(output, "late");
      fs::create_directories(folder.file("set/train"));
      write_bytes(folder.file("set/train/000000.bin"), "early");
      if (overwrite) {
        output.commit();
      } else {
        CHECK(contains(error_of(ExitCode::io, [&] { output.commit(); }), "--overwrite"));
      }
    }
    CHECK(read_bytes(folder.file("set/train/000000.bin")) == (overwrite ? "late" : "early"));
    CHECK(names_in(folder.path()) == Names{"set"});
    fs::remove_all(folder.file("set"));
  }
}

TEST_CASE("a former set is back in its place where the new one cannot be moved there") {
  static int renames = 0;
  const TemporaryFolder folder;
  fs::create_directories(folder.file("set/train"));
  write_bytes(folder.file("set/train/000000.bin"), "former");
  for (const int failing : {0, 1, 2}) {  // 0: the exchange
    {
      OutputFolder output(folder.file("set"), may_replace_shards(true));
      fill_output(output, "new");
      renames = failing;
      set_file_fault([](FileOp op, const std::string&, const std::string&) {
        if (op == FileOp::exchange) return renames == 0 ? EIO : EINVAL;
        return op == FileOp::rename && --renames == 0 ? EIO : 0;
      });
      const std::string message = error_of(ExitCode::io, [&] { output.commit(); });
      set_file_fault(nullptr);
      CHECK(contains(message, "Input/output error"));
    }
    CHECK(read_bytes(folder.file("set/train/000000.bin")) == "former");
    CHECK(names_in(folder.path()) == Names{"set"});
  }
}

TEST_CASE("a former set that is being removed when the process dies is a leftover") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("set/train"));
  write_bytes(folder.file("set/train/000000.bin"), "former");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    OutputFolder output(folder.file("set"), may_replace_shards(true));
    fill_output(output, "new");
    set_file_fault([](FileOp op, const std::string& path, const std::string&) -> int {
      if (op == FileOp::remove && path.ends_with("/train")) ::_exit(0);
      return 0;
    });
    output.commit();
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(read_bytes(folder.file("set/train/000000.bin")) == "new");
  REQUIRE(names_in(folder.path()).size() == 2);
  {
    CHECK(OutputFolder(folder.file("set"), may_replace_shards(true)).removed_leftovers().size() ==
          1);
  }
  CHECK(names_in(folder.path()) == Names{"set"});
}

}  // namespace
}  // namespace bamtrain
