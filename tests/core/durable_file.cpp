// Files appear whole or not at all.

#include "core/durable_file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/sha256.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;
namespace fs = std::filesystem;

/// The operation that fails and its errno; then all operations attempted.
FileOp g_failing = FileOp::write;
int g_error = 0;
std::vector<FileOp> g_seen;

/// Runs `f` with a fault and removes the fault afterwards.
template <class F>
void with_fault(FileOp op, int error, F&& f) {
  g_failing = op;
  g_error = error;
  g_seen.clear();
  set_file_fault([](FileOp now, const std::string&, const std::string&) {
    g_seen.push_back(now);
    return now == g_failing ? g_error : 0;
  });
  struct Lift {
    ~Lift() { set_file_fault(nullptr); }
  } lift;
  f();
}

void write_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

/// Names in the folder, including hidden ones.
std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

/// Runs `check` with both kinds of temporary file: unnamed, and named as on file systems without
/// unnamed files.
void for_both_kinds(const std::function<void()>& check) {
  {
    INFO("a file without a name");
    g_error = 0;
    check();
  }
  INFO("a file with a name");
  with_fault(FileOp::create_unnamed, EOPNOTSUPP, check);
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

TEST_CASE("an atomic file appears with all its bytes at commit, in place of the former") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    const std::string path = folder.file("a");
    write_bytes(path, "former");
    {
      AtomicFile file(path);
      file.write("????, ");
      file.write("world", 5);
      CHECK(read_bytes(path) == "former");
      file.rewrite_start("1234", 4);
      CHECK(file.sha256() == sha256_hex("1234, world"));
      CHECK(read_bytes(path) == "former");
      file.commit();
    }
    CHECK(read_bytes(path) == "1234, world");
    CHECK(names_in(folder) == Names{"a"});
  });
}

TEST_CASE("an atomic file that is given up leaves nothing") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    write_bytes(folder.file("a"), "former");
    {
      AtomicFile file(folder.file("a"));
      file.write("new");
    }
    CHECK(read_bytes(folder.file("a")) == "former");
    CHECK(names_in(folder) == Names{"a"});
  });
}

TEST_CASE("no file of the user's is taken for a temporary one") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    const Names before = {"a.tmp", "a.tmp-", "a.tmp-abcdefgh"};
    for (const std::string& name : before) write_bytes(folder.file(name), "mine");
    write_atomically(folder.file("a"), "new");
    for (const std::string& name : before) CHECK(read_bytes(folder.file(name)) == "mine");
    CHECK(names_in(folder) == Names{"a", "a.tmp", "a.tmp-", "a.tmp-abcdefgh"});
  });
}

TEST_CASE("an atomic file has the access rights of an ordinary new one") {
  for (const mode_t mask : {0022, 0077, 0002}) {
    const mode_t former = ::umask(mask);
    for_both_kinds([&] {
      const TemporaryFolder folder;
      write_bytes(folder.file("ordinary"), "x");
      write_atomically(folder.file("a"), "x");
      CHECK(mode_of(folder.file("a")) == mode_of(folder.file("ordinary")));
      CHECK(mode_of(folder.file("a")) == (0666 & ~mask));
    });
    ::umask(former);
  }
}

TEST_CASE("two atomic files of one name do not meet; the last commit counts") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    AtomicFile first(folder.file("a")), second(folder.file("a"));
    first.write("first");
    second.write("the second");
    second.commit();
    CHECK(read_bytes(folder.file("a")) == "the second");
    first.commit();
    CHECK(read_bytes(folder.file("a")) == "first");
    CHECK(names_in(folder) == Names{"a"});
  });
}

TEST_CASE("whichever operation fails, the former file stays and nothing else") {
  for (const FileOp op : {FileOp::write, FileOp::sync, FileOp::link, FileOp::rename}) {
    for (const int error : {ENOSPC, EIO}) {
      const TemporaryFolder folder;
      write_bytes(folder.file("a"), "former");
      std::string message;
      with_fault(op, error, [&] {
        message = error_of(ExitCode::io, [&] { write_atomically(folder.file("a"), "new"); });
      });
      INFO(message);
      const auto attempts = std::count(g_seen.begin(), g_seen.end(), op);
      if (op == FileOp::link && attempts == 0) continue;  // a file system without unnamed files
      CHECK(attempts == 1);
      CHECK(contains(message, folder.file("a") + ": cannot "));
      CHECK(contains(message, std::strerror(error) + std::string("; ")));
      CHECK(read_bytes(folder.file("a")) == "former");
      CHECK(names_in(folder) == Names{"a"});
    }
  }
}

TEST_CASE("what is on the disk before the name, and the folder after it") {
  const TemporaryFolder folder;
  with_fault(FileOp::remove, 0, [&] { write_atomically(folder.file("a"), "new"); });
  const std::vector<FileOp> expected = {FileOp::create_unnamed, FileOp::write,
                                        FileOp::sync,           FileOp::link,
                                        FileOp::rename,         FileOp::sync_folder};
  CHECK((g_seen == expected || std::count(g_seen.begin(), g_seen.end(), FileOp::create) == 1));
  CHECK(g_seen.back() == FileOp::sync_folder);
  const auto at = [](FileOp op) { return std::find(g_seen.begin(), g_seen.end(), op); };
  CHECK(at(FileOp::sync) < at(FileOp::rename));
}

TEST_CASE("a process that is killed leaves nothing where files need no names") {
  const TemporaryFolder folder;
  with_fault(FileOp::remove, 0, [&] { AtomicFile(folder.file("probe")); });
  if (std::count(g_seen.begin(), g_seen.end(), FileOp::create) == 1) {
    WARN("skipped: the file system of temporary files knows none without a name");
    return;
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(folder.file("a"));
    file.write("half of");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(names_in(folder).empty());
}

namespace {

/// Writes the file in a child process that is killed before the rename, the last step but one.
void be_killed_in_commit(const std::string& path) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    set_file_fault([](FileOp now, const std::string&, const std::string&) {
      if (now == FileOp::rename) ::kill(::getpid(), SIGKILL);
      return now == g_failing ? g_error : 0;
    });
    write_atomically(path, "never seen");
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("what a process leaves that is killed between link and rename, the next one removes") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    write_bytes(folder.file("a"), "former");
    be_killed_in_commit(folder.file("a"));
    be_killed_in_commit(folder.file("b"));
    REQUIRE(names_in(folder).size() == 3);  // a, its leftover, and that of b
    be_killed_in_commit(folder.file("a"));
    CHECK(names_in(folder).size() == 3);
    write_atomically(folder.file("a"), "new");
    CHECK(read_bytes(folder.file("a")) == "new");
    CHECK(names_in(folder).size() == 2);  // a and the leftover of b
    { AtomicFile given_up(folder.file("b")); }
    CHECK(names_in(folder) == Names{"a"});
  });
}

TEST_CASE("a file that is being written is no leftover") {
  for_both_kinds([] {
    const TemporaryFolder folder;
    AtomicFile first(folder.file("a"));
    first.write("first");
    {
      // Runs while the file has its temporary name.
      static std::string path;
      path = folder.file("a");
      set_file_fault([](FileOp now, const std::string&, const std::string&) {
        if (now != FileOp::rename) return 0;
        set_file_fault(nullptr);
        AtomicFile other(path);
        return 0;
      });
      struct Lift {
        ~Lift() { set_file_fault(nullptr); }
      } lift;
      first.commit();
    }
    CHECK(read_bytes(folder.file("a")) == "first");
    CHECK(names_in(folder) == Names{"a"});
  });
}

TEST_CASE("only what is named as an atomic file names it is a leftover, and only a file") {
  const TemporaryFolder folder;
  g_error = 0;
  be_killed_in_commit(folder.file("a"));
  REQUIRE(names_in(folder).size() == 1);
  const std::string left = names_in(folder)[0];
  // Names with one letter changed, in either half; then a folder and a link with such a name.
  std::string chance = left, check = left;
  const auto exchange = [](char& c) { c = c == 'x' ? 'y' : 'x'; };
  exchange(chance[left.size() - 5]);
  exchange(check[left.size() - 1]);
  write_bytes(folder.file(chance), "mine");
  write_bytes(folder.file(check), "mine");
  be_killed_in_commit(folder.file("b"));
  std::string of_b;
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with("b.")) of_b = name;
  }
  fs::remove(folder.file(of_b));
  fs::create_directory(folder.file(of_b));
  { AtomicFile file(folder.file("a")); }
  { AtomicFile file(folder.file("b")); }
  CHECK_FALSE(fs::exists(folder.file(left)));
  CHECK(fs::exists(folder.file(chance)));
  CHECK(fs::exists(folder.file(check)));
  CHECK(fs::is_directory(folder.file(of_b)));
}

TEST_CASE("a file is written where symbolic links lead, and the links stay") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("elsewhere"));
  fs::create_symlink("elsewhere/b", folder.file("a"));
  fs::create_symlink("a", folder.file("c"));
  for (const std::string text : {"new", "replaced"}) {
    write_atomically(folder.file("c"), text);
    CHECK(read_bytes(folder.file("elsewhere/b")) == text);
    CHECK(fs::is_symlink(folder.file("a")));
    CHECK(fs::is_symlink(folder.file("c")));
  }
  fs::create_symlink("round", folder.file("round"));
  CHECK(contains(error_of(ExitCode::io, [&] { AtomicFile(folder.file("round")); }),
                 "Too many levels of symbolic links"));
}

TEST_CASE("names that no file can have are refused before the work") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("folder"));
  fs::create_symlink("/dev/null", folder.file("device"));
  const auto refusal = [&](const std::string& name) {
    return error_of(ExitCode::io, [&] { AtomicFile(folder.file(name)); });
  };
  CHECK(contains(refusal("folder"), "a folder of this name exists; choose another name"));
  CHECK(contains(refusal("device"), "not a regular file"));
  CHECK(contains(refusal("none/a"), "No such file or directory; create the folder"));
  CHECK(fs::is_symlink(folder.file("device")));
}

TEST_CASE("a durable file counts and digests what it writes, and is removed unless finished") {
  const TemporaryFolder folder;
  {
    DurableFile file(folder.file("a"));
    file.write("abc", 3);
    const FileDigest digest = file.finish();
    CHECK(digest.bytes == 3);
    CHECK(digest.sha256 == sha256_hex("abc"));
  }
  CHECK(read_bytes(folder.file("a")) == "abc");
  {
    DurableFile abandoned(folder.file("b"));
    abandoned.write("abc", 3);
  }
  CHECK(names_in(folder) == Names{"a"});
}

TEST_CASE("a durable file whose writing fails is removed") {
  for (const FileOp op : {FileOp::create, FileOp::write, FileOp::sync}) {
    const TemporaryFolder folder;
    std::string message;
    with_fault(op, ENOSPC, [&] {
      message = error_of(ExitCode::io, [&] {
        DurableFile file(folder.file("a"));
        file.write("text", 4);
        file.finish();
      });
    });
    CHECK(contains(message, "No space left on device; free space"));
    CHECK(names_in(folder).empty());
  }
}

TEST_CASE("a full device is reported by the write itself") {
  struct stat info {};
  if (::stat("/dev/full", &info) != 0 || !S_ISCHR(info.st_mode)) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.file("full"));
  const std::string message = error_of(ExitCode::io, [&] {
    DurableFile file(folder.file("full"));
    file.write("x", 1);
  });
  CHECK(contains(message, "full: cannot write 1 bytes: No space left"));
}

TEST_CASE("a tree is removed with all in it, what its links lead to stays") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("tree/deep/deeper"));
  write_bytes(folder.file("tree/deep/file"), "x");
  write_bytes(folder.file("kept"), "x");
  fs::create_symlink(folder.file("kept"), folder.file("tree/link"));
  remove_tree(folder.file("tree"));
  remove_tree(folder.file("tree"));  // missing: no error
  CHECK(names_in(folder) == Names{"kept"});
}

TEST_CASE("the folder of a path is what precedes its last name") {
  CHECK(parent_folder("a") == ".");
  CHECK(parent_folder("/a") == "/");
  CHECK(parent_folder("b/a") == "b");
  CHECK(parent_folder("/c/b/a") == "/c/b");
}

TEST_CASE("folders that are missing are made, and each is on the disk before the next") {
  const TemporaryFolder folder;
  with_fault(FileOp::remove, 0, [&] { make_folders(folder.file("a/b//c/")); });
  CHECK(fs::is_directory(folder.file("a/b/c")));
  CHECK(g_seen == std::vector<FileOp>{FileOp::make_folder, FileOp::sync_folder, FileOp::make_folder,
                                      FileOp::sync_folder, FileOp::make_folder,
                                      FileOp::sync_folder});
  with_fault(FileOp::remove, 0, [&] { make_folders(folder.file("a/b")); });
  CHECK(g_seen.empty());
  write_bytes(folder.file("file"), "");
  fs::create_symlink("nowhere", folder.file("dangling"));
  for (const char* path : {"file", "file/a", "dangling", "dangling/a"}) {
    const std::string message = error_of(ExitCode::io, [&] { make_folders(folder.file(path)); });
    CHECK(contains(message, "create the folder"));
  }
}

TEST_CASE("two paths take each other's place, or nothing happens") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    fs::create_directory(folder.file(name));
    write_bytes(folder.file(name) + "/" + name, "");
  }
  if (exchange_paths(folder.file("a"), folder.file("b"))) {
    CHECK(fs::exists(folder.file("a/b")));
    CHECK(fs::exists(folder.file("b/a")));
  }
  const bool before = fs::exists(folder.file("a/b"));
  with_fault(FileOp::exchange, EINVAL,
             [&] { CHECK_FALSE(exchange_paths(folder.file("a"), folder.file("b"))); });
  CHECK(fs::exists(folder.file("a/b")) == before);
  CHECK(
      contains(error_of(ExitCode::io, [&] { exchange_paths(folder.file("a"), folder.file("c")); }),
               folder.file("a")));
}

}  // namespace
}  // namespace bamtrain
