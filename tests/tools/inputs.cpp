#include "data_tools/inputs.h"

#include <filesystem>
#include <string>

#include "catch.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("a file that is named twice is refused by both names, whatever leads to it") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.txt"), "a\n");
  write_bytes(folder.file("b.txt"), "a\n");
  std::filesystem::create_symlink("a.txt", folder.file("link.txt"));
  std::filesystem::create_hard_link(folder.file("a.txt"), folder.file("hard.txt"));
  InputOptions o;
  o.kind = DocumentKind::line;
  for (const char* again : {"a.txt", "link.txt", "hard.txt", "./a.txt"}) {
    o.paths = {folder.file("a.txt"), folder.file("b.txt"), folder.file(again)};
    CHECK(contains(error_of(ExitCode::usage, [&] { Inputs{o}; }),
                   folder.file(again) + ": the same file as " + folder.file("a.txt")));
  }
  o.paths = {folder.file("a.txt"), folder.file("b.txt")};
  Inputs inputs(o);
  RawDocument d;
  CHECK((inputs.next(&d) && inputs.next(&d) && !inputs.next(&d)));
}

}  // namespace
}  // namespace bamtrain
