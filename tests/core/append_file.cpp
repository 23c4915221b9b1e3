#include "core/append_file.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "core/error.h"

using namespace bamtrain;

namespace {

std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// The message of the Error (ExitCode::io) that `f` throws.
template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::io);
    return e.what();
  }
  return "";
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
  CHECK(mentions(refusal([] { AppendFile("/nowhere/at/all", 0); }),
                 "/nowhere/at/all: expected a file that can be written, found No such file"));
  CHECK(mentions(refusal([] { AppendFile("/dev/full", 0); }), "/dev/full: expected "));
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
