#include "core/append_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "data/files.h"

using namespace bamtrain;
using bamtrain::testing::error_of;

namespace {

std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("a file is made, cut back and appended to") {
  std::string folder = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  {
    AppendFile file(path, 0);
    file.write("one\n");
    file.write("");
    file.write("two\n");
    file.sync();
  }
  CHECK(content(path) == "one\ntwo\n");
  AppendFile(path, 4).write("three\n");
  CHECK(content(path) == "one\nthree\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("what cannot be appended to is named, with the reason") {
  const auto mentions = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(mentions(error_of(ExitCode::io, [] { AppendFile("/nowhere/at/all", 0); }),
                 "/nowhere/at/all: cannot write: No such file"));
  CHECK(
      mentions(error_of(ExitCode::io, [] { AppendFile("/dev/full", 0); }), "/dev/full: expected "));
}

TEST_CASE("a file that is removed while it is written is made anew, which is told once") {
  std::string folder = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  AppendFile file(path, 0);
  file.write("one\n");
  CHECK_FALSE(file.take_lost());
  std::filesystem::remove(path);
  file.write("two\n");
  CHECK(content(path) == "two\n");
  CHECK(file.take_lost());
  CHECK_FALSE(file.take_lost());
  std::filesystem::rename(path, folder + "/rotated");
  std::ofstream(path) << "another's\n";
  file.write("three\n");
  CHECK(content(path) == "another's\nthree\n");
  CHECK(file.take_lost());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file that is cut while it is written goes on behind what of it is whole") {
  std::string folder = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  std::ofstream(path) << "kept";
  const auto in_fours = [](const std::string& name) {
    return static_cast<int64_t>(std::filesystem::file_size(name)) / 4 * 4;
  };
  AppendFile file(path, 4, in_fours);
  file.write("one\n");
  file.write("two\n");
  CHECK_FALSE(file.take_lost());
  std::filesystem::resize_file(path, 10);
  file.write("six\n");
  CHECK(content(path) == "keptone\nsix\n");
  CHECK(file.take_lost());
  file.write("ten\n");
  CHECK_FALSE(file.take_lost());
  std::filesystem::resize_file(path, 0);  // as logrotate's copytruncate does
  file.write("two\n");
  CHECK(content(path) == "two\n");
  CHECK(file.take_lost());
  std::ofstream(path, std::ios::app) << "another's\n";
  file.write("end\n");
  CHECK(content(path) == "two\nanother's\nend\n");
  CHECK_FALSE(file.take_lost());
  std::filesystem::remove_all(folder);
}

namespace {

using Operation = std::pair<FileOp, std::string>;
std::vector<Operation> g_operations;
FileOp g_failing_operation = FileOp::rename;

int note(FileOp op, const std::string& path, const std::string&) {
  g_operations.emplace_back(op, path);
  return op == g_failing_operation ? EIO : 0;
}

}  // namespace

TEST_CASE("what is appended is synced with its folder's entry, and each step may fail") {
  std::string folder = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  const auto append = [&] {
    AppendFile file(path, 0);
    file.write("one\n");
    file.sync();
  };
  const std::vector<Operation> all = {{FileOp::create, path},
                                      {FileOp::write, path},
                                      {FileOp::sync, path},
                                      {FileOp::sync_folder, folder}};
  struct Lift {
    ~Lift() { set_file_fault(nullptr); }
  } lift;
  set_file_fault(note);
  g_failing_operation = FileOp::rename;  // never called in this test
  append();
  CHECK(g_operations == all);
  for (size_t n = 0; n < all.size(); ++n) {
    g_failing_operation = all[n].first;
    g_operations.clear();
    const std::string message = error_of(ExitCode::io, append);
    INFO(message);
    CHECK(message.find(all[n].second + ": cannot ") == 0);
    CHECK(message.find(": Input/output error; check ") != std::string::npos);
    CHECK(g_operations ==
          std::vector<Operation>(all.begin(), all.begin() + static_cast<int>(n) + 1));
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a pipe is no file to append to, whether somebody reads it or not") {
  std::string folder = (std::filesystem::temp_directory_path() / "bamtrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const auto refused = [&] {
    CHECK(error_of(ExitCode::io, [&] { open_to_append(path, "remove it"); }) ==
          path + ": expected a regular file, found a pipe, a device or a socket; remove it");
  };
  refused();
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  refused();
  ::close(reader);
  // A pipe replaces the file while it is being written.
  std::filesystem::remove(path);
  AppendFile file(path, 0);
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(error_of(ExitCode::io, [&] { file.write("x"); }).find("found a pipe") != std::string::npos);
  CHECK(error_of(ExitCode::io, [&] { DurableFile unused(path); }).find(path) != std::string::npos);
  std::filesystem::remove_all(folder);
}
