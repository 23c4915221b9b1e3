#include "prompts/passkey_task.h"

#include <set>

#include "catch.h"
#include "data/files.h"
#include "data/tokenizers.h"
#include "tasks/passkey.h"

namespace bamtrain {
namespace {

using namespace testing;

Options options_of(const std::string& tokenizer = "digits.json") {
  Options o = default_options(passkey_task().options);
  o.set("tokenizer", golden_path(tokenizer));
  return o;
}

std::unique_ptr<PasskeyTask> open(const Options& options = options_of(),
                                  LengthRange lengths = {147, 600}, uint64_t seed = 1,
                                  const std::string& set = "train") {
  return PasskeyTask::open(options, lengths, 560, seed, set);
}

/// The text of the inputs, and of the targets.
std::pair<std::string, std::string> texts(const Task& task, const Example& e) {
  std::string inputs, targets;
  for (const int32_t id : e.inputs) inputs += task.symbol(id);
  for (const int32_t id : e.targets) targets += id == kIgnoreIndex ? "" : task.label(id);
  return {inputs, targets};
}

TEST_CASE("the digits of a passkey are asked for, each behind those before it") {
  Options given = options_of();
  given.set("digits", 6.0);
  given.set("prefix_digits", 1.0);
  given.set("question", "paper");
  for (const bool first_given : {false, true}) {
    const auto task = open(first_given ? given : options_of());
    Example e;
    task->draw(4, 300, &e);
    const auto [inputs, targets] = texts(*task, e);
    const size_t digits = first_given ? 6 : 5;
    CHECK(targets.size() == 5);
    // "KEY is the pass key.", the key's second occurrence.
    const size_t at = inputs.find("\u0120is\u0120the\u0120pass\u0120key.");
    REQUIRE(at != std::string::npos);
    const std::string key = inputs.substr(at - digits, digits);
    CHECK(key.substr(digits - 5) == targets);
    const std::string end =
        (first_given ? "The\u0120passkey\u0120is:\u0120" : "The\u0120pass\u0120key\u0120is\u0120") +
        key.substr(0, digits - 1);
    CHECK(inputs.ends_with(end));
    // The targets are at the last places.
    for (size_t i = 0; i < e.targets.size(); ++i) {
      CHECK((e.targets[i] != kIgnoreIndex) == (i + 5 >= e.targets.size()));
    }
  }
}

TEST_CASE("a passkey's sequence is a function of seed, set, index and length, in any order") {
  const auto task = open(), same = open();
  Example a, b;
  int different = 0;
  for (const int64_t index : {int64_t{0}, int64_t{7}, int64_t{1'000'000'007}}) {
    for (const int64_t length : {147, 400, 600}) {
      task->draw(index, length, &a);
      same->draw(index + 1, 600, &b);
      same->draw(index, length, &b);
      CHECK(a == b);
      open(options_of(), {147, 600}, 2)->draw(index, length, &b);
      different += a != b;
      open(options_of(), {147, 600}, 1, "val")->draw(index, length, &b);
      different += a != b;
      task->draw(index + 1, length, &b);
      different += a != b;
    }
  }
  CHECK(different == 27);
}

TEST_CASE("prompts of passkeys are as long as their length allows, and no longer") {
  const auto task = open();
  const Tokenizer tokenizer = Tokenizer::open(golden_path("digits.json"));
  const int64_t filler = Passkey(tokenizer, {}).filler();
  std::set<int64_t> sizes;
  for (int64_t index = 0; index < 1000; ++index) {
    const int64_t length = task->length(index);
    Example e;
    task->draw(index, length, &e);
    // After the prompt come a space and the digits except the last.
    const int64_t prompt = std::ssize(e.inputs) - 5;
    CHECK(prompt <= length);
    CHECK(prompt > length - filler);
    CHECK(std::ssize(e.inputs) <= task->most_inputs());
    sizes.insert(prompt);
  }
  CHECK(std::ssize(sizes) == (600 - 147) / filler + 1);
}

TEST_CASE("a passkey begins with the tokenizer's BOS where it is asked to") {
  Options o = options_of();
  o.set("bos", true);
  const auto with = open(o, {148, 600}), without = open();
  Example a, b;
  with->draw(3, 148, &a);
  without->draw(3, 147, &b);
  CHECK(a.inputs[0] == Tokenizer::open(golden_path("digits.json")).bos());
  CHECK(std::vector<int32_t>(a.inputs.begin() + 1, a.inputs.end()) == b.inputs);
}

TEST_CASE("passkeys that cannot be are refused by their key") {
  const auto refused = [](const Options& options, LengthRange lengths, int64_t inputs) {
    return error_of(ExitCode::config,
                    [&] { PasskeyTask::open(options, lengths, inputs, 1, "train"); });
  };
  CHECK(contains(refused(options_of(), {146, 600}, 560), "{length}: expected at least the 147"));
  CHECK(contains(refused(options_of(), {147, 600}, 559), "model.vocab: expected at least the 560"));
  CHECK(contains(refused(options_of("gpt2.json"), {147, 600}, 9999), "{tokenizer}: "));
  Options o = options_of();
  o.set("prefix_digits", 5.0);
  CHECK(contains(refused(o, {147, 600}, 560), "{prefix_digits}: expected fewer than the 5"));
  o = options_of();
  o.set("tokenizer", std::string("nowhere"));
  CHECK(contains(error_of(ExitCode::io, [&] { open(o); }), "nowhere"));
}

TEST_CASE("a passkey's sequences are known by the tokenizer's bytes, wherever it lies") {
  const TemporaryFolder folder;
  write_bytes(folder.file("t.json"), read_bytes(golden_path("digits.json")));
  Options moved = options_of();
  moved.set("tokenizer", folder.file("t.json"));
  CHECK(open(moved)->options() == open()->options());
}

}  // namespace
}  // namespace bamtrain
