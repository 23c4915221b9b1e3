#include "data_tools/document_spill.h"

#include <string>
#include <vector>

#include "catch.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

std::vector<int32_t> document(int32_t number) {
  return std::vector<int32_t>(static_cast<size_t>(number * 37 % 400), 1000 + number);
}

TEST_CASE("documents come back as they were put in, by two processes, of either width") {
  for (const int width : {2, 4}) {
    const TemporaryFolder folder;
    int64_t kept = 0;
    {
      DocumentSpill spill(folder.file("a"), width, 0);
      for (int32_t i = 0; i < 300; ++i) {
        const DocumentSpill::Record record = spill.append(uint64_t{1} << 63 | i, document(i));
        std::vector<int32_t> read;
        if (i % 50 == 7) {
          spill.read(record, &read);
          CHECK(read == document(i));
        }
      }
      kept = spill.sync();
      spill.append(1, document(1));
    }
    DocumentSpill spill(folder.file("a"), width, kept);
    spill.append(300, document(300));
    int32_t n = 0;
    std::vector<DocumentSpill::Record> records;
    spill.for_each([&](const DocumentSpill::Record& record) {
      CHECK(record.number == (n < 300 ? uint64_t{1} << 63 | n : 300));
      records.push_back(record);
      ++n;
    });
    REQUIRE(n == 301);
    for (int32_t i = 300; i >= 0; --i) {
      std::vector<int32_t> read;
      spill.read(records[static_cast<size_t>(i)], &read);
      CHECK(read == document(i));
    }
  }
}

TEST_CASE("a file that ends within a document is an error") {
  const TemporaryFolder folder;
  {
    DocumentSpill spill(folder.file("a"), 2, 0);
    spill.append(1, std::vector<int32_t>(10, 5));
    spill.sync();
  }
  for (const int64_t keep : {35, 17, 15, 1}) {
    const std::string bytes = read_bytes(folder.file("a"));
    DocumentSpill spill(folder.file("a"), 2, keep);
    const std::string message =
        error_of(ExitCode::data, [&] { spill.for_each([](const auto&) {}); });
    CHECK((contains(message, "ends inside a document; ") ||
           contains(message, "a document reaches past the end; ")));
    write_bytes(folder.file("a"), bytes);
  }
}

}  // namespace
}  // namespace bamtrain
