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
  std::vector<int64_t> train, val;  // document numbers, in the order written
};

std::string numbered_text(int64_t number) { return "document " + std::to_string(number); }

/// Two tokens: BOS and 10 + the document's number.
std::vector<int32_t> numbered_tokens(int64_t number) {
  return {1, static_cast<int32_t>(10 + number)};
}

/// Splits documents with these numbers. With `ends_at`, one process works up to there and another
/// continues from there; the first one loses what it did after that.
Sets split(ValidationShare share, const std::vector<int64_t>& numbers, size_t ends_at = 0) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  std::filesystem::create_directory(folder.file("train"));
  std::filesystem::create_directory(folder.file("val"));
  ValidationSplit::State state;
  ShardSetWriter::State train_state, val_state;
  size_t at = 0;
  for (const size_t end : {ends_at, numbers.size()}) {
    if (end == 0) continue;
    ShardSetWriter train(folder.file("train"), tokenizer, 1 << 30, train_state);
    ShardSetWriter val(folder.file("val"), tokenizer, 1 << 30, val_state);
    ValidationSplit both(share, &train, &val, folder.file("held"), 2, state);
    const auto add = [&](size_t i) {
      both.add(numbered_tokens(numbers[i]), ValidationSplit::draw(numbered_text(numbers[i])));
    };
    for (; at < end; ++at) add(at);
    if (end < numbers.size()) {
      state = both.sync();
      train_state = train.sync();
      val_state = val.sync();
      for (size_t lost = end; lost < std::min(end + 20, numbers.size()); ++lost) add(lost);
      continue;
    }
    both.finish(true);
    train.finish();
    val.finish();
  }
  const auto found = [&](const std::string& name) {
    std::vector<int64_t> list;
    for (const auto& d : split_at(uint16_tokens(folder.file(name) + "/000000.bin"), 1)) {
      list.push_back(d.at(1) - 10);
    }
    return list;
  };
  return {found("train"), found("val")};
}

std::vector<int64_t> up_to(int64_t n) {
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

TEST_CASE("a draw is the beginning of the text's SHA-256") {
  // FIPS 180-4's examples.
  CHECK(ValidationSplit::draw("abc") == 0xba7816bf8f01cfea);
  CHECK(ValidationSplit::draw("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        0x248d6a61d20638b8);
}

TEST_CASE("a number of documents: those with the lowest draws of all, in order") {
  const int64_t n = 400, k = 25;
  const size_t ends_at = GENERATE(0, 10, 30, 200);
  const Sets sets = split({k, 0, 0, 0}, up_to(n), ends_at);
  std::vector<int64_t> order = up_to(n);
  std::sort(order.begin(), order.end(), [](int64_t a, int64_t b) {
    return ValidationSplit::draw(numbered_text(a)) < ValidationSplit::draw(numbered_text(b));
  });
  std::vector<int64_t> expected(order.begin(), order.begin() + k);
  std::sort(expected.begin(), expected.end());
  CHECK(sets.val == expected);
  CHECK(sets.train.size() == n - k);
  std::vector<int64_t> rest = sets.train;
  std::sort(rest.begin(), rest.end());
  CHECK(std::unique(rest.begin(), rest.end()) == rest.end());
}

TEST_CASE("a document that gives up its place joins the training set where that happens") {
  // The second process reads the held documents from the disk; the training order must not show it.
  CHECK(split({25, 0, 0, 0}, up_to(400), 120).train == split({25, 0, 0, 0}, up_to(400)).train);
}

TEST_CASE(
    "a fraction: those whose draw lies in it, wherever they stand and whatever else there is") {
  std::vector<int64_t> turned = up_to(800);
  std::reverse(turned.begin(), turned.end());
  const Sets some = split({0, 0.25, 0, 0}, up_to(400)), more = split({0, 0.25, 0, 0}, turned, 300);
  for (int64_t i : some.val) {
    CHECK(static_cast<double>(ValidationSplit::draw(numbered_text(i))) <
          0.25 * 18446744073709551616.0);
  }
  for (int64_t i : some.val) CHECK(std::count(more.val.begin(), more.val.end(), i) == 1);
  for (int64_t i : some.train) CHECK(std::count(more.train.begin(), more.train.end(), i) == 1);
  CHECK(std::is_sorted(some.train.begin(), some.train.end()));
  CHECK(more.train.size() + more.val.size() == 800);
  // 200 expected, standard deviation 12.
  CHECK(more.val.size() > 150);
  CHECK(more.val.size() < 250);
}

/// Documents of 1, 2, 3, ... tokens, cut by number of tokens: the contents and document counts of
/// the sets.
struct Cut {
  std::vector<int32_t> train, val;
  int64_t train_documents = 0, val_documents = 0;
};
Cut cut(ValidationShare share, size_t ends_at = 0) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  std::filesystem::create_directory(folder.file("train"));
  std::filesystem::create_directory(folder.file("val"));
  ValidationSplit::State state;
  ShardSetWriter::State train_state, val_state;
  Cut result;
  size_t at = 0;
  for (const size_t end : {ends_at, size_t{20}}) {
    if (end == 0) continue;
    ShardSetWriter train(folder.file("train"), tokenizer, 1 << 30, train_state);
    ShardSetWriter val(folder.file("val"), tokenizer, 1 << 30, val_state);
    ValidationSplit both(share, &train, &val, folder.file("held"), 2, state);
    for (; at < end; ++at) {
      std::vector<int32_t> document(at + 1, static_cast<int32_t>(100 + at));
      document[0] = tokenizer.bos();
      both.add(document, 0);
    }
    state = both.sync();
    train_state = train.sync();
    val_state = val.sync();
    if (end < 20) continue;
    both.finish(true);
    result.train_documents = train.finish().documents;
    result.val_documents = val.finish().documents;
  }
  result.train = uint16_tokens(folder.file("train/000000.bin"));
  result.val = uint16_tokens(folder.file("val/000000.bin"));
  return result;
}

TEST_CASE("the first tokens: exactly so many, then those that are unused, cut where they end") {
  std::vector<int32_t> all;
  for (int32_t at = 0; at < 20; ++at) {
    all.push_back(1);
    all.insert(all.end(), static_cast<size_t>(at), 100 + at);
  }
  REQUIRE(all.size() == 210);
  const auto begin = all.begin();
  for (const size_t ends_at : {0, 3, 9, 10, 11, 15}) {
    Cut sets = cut({0, 0, 50, 20}, ends_at);  // inside the tenth and the twelfth document
    CHECK(sets.val == std::vector<int32_t>(begin, begin + 50));
    CHECK(sets.train == std::vector<int32_t>(begin + 70, all.end()));
    CHECK(sets.val_documents == 10);
    CHECK(sets.train_documents == 8);    // the 13th begins at 79
    sets = cut({0, 0, 55, 0}, ends_at);  // at the end of the tenth
    CHECK(sets.val == std::vector<int32_t>(begin, begin + 55));
    CHECK(sets.train == std::vector<int32_t>(begin + 55, all.end()));
    CHECK(sets.train_documents == 10);
  }
}

}  // namespace
}  // namespace bamtrain
