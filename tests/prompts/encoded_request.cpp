#include "prompts/encoded_request.h"

#include "catch.h"
#include "core/error.h"
#include "tools/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  int32_t bos = tokenizer.bos();

  EncodedRequest encode(const std::string& context, const std::string& continuation,
                        std::optional<int64_t> document_start) const {
    return RequestEncoder(tokenizer, document_start).encode(context, continuation, "file:3");
  }
  /// `first`, followed by the ids of `text`.
  std::vector<int32_t> ids(const std::string& text, std::vector<int32_t> first = {}) const {
    const std::vector<int32_t> of_text = tokenizer.encode(text);
    first.insert(first.end(), of_text.begin(), of_text.end());
    return first;
  }
};

}  // namespace

TEST_CASE("a continuation is what the whole text has beyond the ids of its context") {
  const Fixture f;
  REQUIRE(f.bos >= 0);
  const std::string context = "The old sailor crossed", continuation = " two wooden houses.";
  const auto size = static_cast<int64_t>(f.ids(context).size());
  EncodedRequest r = f.encode(context, continuation, std::nullopt);
  CHECK(r.ids == f.ids(context + continuation));
  CHECK(r.begin == size);
  // BOS if documents begin with it, otherwise no start token.
  r = f.encode(context, continuation, f.bos);
  CHECK(r.ids == f.ids(context + continuation, {f.bos}));
  CHECK(r.begin == size + 1);
  r = RequestEncoder(f.tokenizer, f.bos, false).encode(context, continuation, "file:3");
  CHECK(r.ids == f.ids(context + continuation));
  CHECK(r.begin == size);
  r = f.encode(context, continuation, f.tokenizer.eos());
  CHECK(r.ids == f.ids(context + continuation));
  CHECK(r.begin == size);
}

TEST_CASE("a context has the ids that it has alone, also where a token crosses its end") {
  const Fixture f;
  int crossed = 0;
  const std::string text = "The old sailor crossed two wooden houses.";
  for (size_t cut = 1; cut + 1 < text.size(); ++cut) {
    if (text[cut - 1] == ' ') continue;  // the space moves to the continuation
    const std::string context = text.substr(0, cut);
    const std::vector<int32_t> own = f.ids(context, {f.bos}), whole = f.ids(text, {f.bos});
    if (own.size() >= whole.size()) continue;
    std::vector<int32_t> expected = own;
    expected.insert(expected.end(), whole.begin() + std::ssize(own), whole.end());
    const EncodedRequest r = f.encode(context, text.substr(cut), f.bos);
    CHECK(r.ids == expected);
    CHECK(r.begin == std::ssize(own));
    crossed += expected != whole;
  }
  CHECK(crossed > 0);
}

TEST_CASE("white space at a context's end belongs to the continuation") {
  const Fixture f;
  for (const char* space : {" ", "  ", "\n", " \n\u3000"}) {
    const std::string context = "Every winter" + std::string(space);
    const EncodedRequest r = f.encode(context, "measured", f.bos);
    CHECK(r.ids == f.ids(context + "measured", {f.bos}));
    CHECK(r.begin == static_cast<int64_t>(f.ids("Every winter", {f.bos}).size()));
  }
}

TEST_CASE("an empty context is scored behind what begins a document") {
  const Fixture f;
  for (const int32_t start : {f.bos, f.tokenizer.eos()}) {
    for (const char* context : {"", " \n"}) {
      const EncodedRequest r = f.encode(context, "Her brother", start);
      CHECK(r.ids == f.ids(context + std::string("Her brother"), {start}));
      CHECK(r.begin == 1);
    }
  }
  const std::string none =
      error_of(ExitCode::data, [&] { f.encode("", "Her brother", std::nullopt); });
  CHECK(contains(
      none, "file:3: expected a context: neither the shards nor the tokenizer have a BOS id, "));
}

TEST_CASE("a continuation without ids of its own is refused") {
  const Fixture f;
  CHECK(contains(error_of(ExitCode::data, [&] { f.encode("Every winter", "", f.bos); }),
                 "file:3: expected a continuation that adds tokens to its context"));
}
