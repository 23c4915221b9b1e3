#include "data_tools/validation_split.h"

#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "data/tokenizer.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

struct Sets {
  std::vector<int64_t> train, val;  // numbers of documents, in the order written
};

/// Splits documents 0, 1, ... of two tokens each: BOS and 10 + the document's number.
Sets split(ValidationShare share, int64_t documents) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  Sets sets;
  const auto numbers = [&](const std::string& name) {
    std::vector<int64_t> found;
    for (const auto& d : split_at(uint16_tokens(folder.file(name) + "/000000.bin"), 1)) {
      found.push_back(d.at(1) - 10);
    }
    return found;
  };
  std::filesystem::create_directory(folder.file("train"));
  std::filesystem::create_directory(folder.file("val"));
  ShardSetWriter train(folder.file("train"), tokenizer, 1 << 30);
  ShardSetWriter val(folder.file("val"), tokenizer, 1 << 30);
  ValidationSplit both(share, &train, &val);
  for (int64_t i = 0; i < documents; ++i) {
    both.add(std::vector<int32_t>{1, static_cast<int32_t>(10 + i)});
  }
  both.finish();
  train.finish();
  val.finish();
  return {numbers("train"), numbers("val")};
}

TEST_CASE("a number of documents: those with the lowest draws of all, in order") {
  const int64_t n = 400, k = 25;
  const Sets sets = split({k, 0}, n);
  std::vector<int64_t> order(n);
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  std::sort(order.begin(), order.end(), [](int64_t a, int64_t b) {
    return ValidationSplit::draw(a) < ValidationSplit::draw(b);
  });
  std::vector<int64_t> expected(order.begin(), order.begin() + k);
  std::sort(expected.begin(), expected.end());
  CHECK(sets.val == expected);
  CHECK(sets.train.size() == n - k);
}

TEST_CASE("a fraction: those whose draw lies in it, whatever else there is") {
  const Sets some = split({0, 0.25}, 400), more = split({0, 0.25}, 800);
  for (int64_t i : some.val) {
    CHECK(static_cast<double>(ValidationSplit::draw(i)) < 0.25 * 18446744073709551616.0);
  }
  CHECK(std::equal(some.val.begin(), some.val.end(), more.val.begin()));
  CHECK(std::is_sorted(more.train.begin(), more.train.end()));
  CHECK(more.train.size() + more.val.size() == 800);
}

TEST_CASE("the draw is spread over the text") {
  const Sets sets = split({200, 0}, 2000);
  // 50 expected in each quarter, standard deviation 6.
  for (int64_t quarter = 0; quarter < 4; ++quarter) {
    const auto in_quarter = std::count_if(sets.val.begin(), sets.val.end(),
                                          [&](int64_t i) { return i / 500 == quarter; });
    CHECK(in_quarter > 25);
    CHECK(in_quarter < 75);
  }
}

}  // namespace
}  // namespace bamtrain
