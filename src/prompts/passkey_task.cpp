#include "prompts/passkey_task.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

/// Identifies the sequences independently of the tokenizer's path.
Options identity_of(Options options, const Tokenizer& tokenizer) {
  options.set("tokenizer", tokenizer.sha256());
  return options;
}

}  // namespace

PasskeyOptions passkey_options(const Options& options) {
  check_passkey_digits(options);
  PasskeyOptions o;
  o.digits = static_cast<int64_t>(options.number("digits"));
  o.prefix_digits = static_cast<int64_t>(options.number("prefix_digits"));
  o.question =
      options.text("question") == "paper" ? PasskeyQuestion::paper : PasskeyQuestion::published;
  o.bos = options.flag("bos");
  return o;
}

std::unique_ptr<PasskeyTask> PasskeyTask::open(const Options& options, LengthRange lengths,
                                               int64_t inputs, uint64_t seed,
                                               const std::string& set) {
  const std::string& path = options.text("tokenizer");
  const PasskeyOptions asked = passkey_options(options);
  auto tokenizer = std::make_unique<const Tokenizer>(Tokenizer::open(path));
  if (tokenizer->vocab() > inputs) {
    throw Error(ExitCode::config, "model.vocab",
                fmt::format("at least the {} ids of {}", tokenizer->vocab(), path),
                std::to_string(inputs), "raise it, or name another tokenizer");
  }
  const Options identity = identity_of(options, *tokenizer);
  std::unique_ptr<PasskeyTask> task(
      new PasskeyTask(std::move(tokenizer), asked, identity, lengths, seed, set));
  const int64_t fixed = task->passkey_.fixed();
  if (lengths.shortest < fixed) {
    throw Error(ExitCode::config, "{length}",
                fmt::format("at least the {} tokens of a prompt without filler", fixed),
                std::to_string(lengths.shortest), "raise it");
  }
  return task;
}

PasskeyTask::PasskeyTask(std::unique_ptr<const Tokenizer> tokenizer, const PasskeyOptions& asked,
                         const Options& identity, LengthRange lengths, uint64_t seed,
                         const std::string& set)
    : Task(passkey_task(), identity, lengths, seed, set),
      tokenizer_(std::move(tokenizer)),
      passkey_(*tokenizer_, asked),
      stream_(seed, fmt::format("task.passkey.{}.sequences", set)) {}

void PasskeyTask::draw(int64_t index, int64_t length, Example* out) const {
  require(length >= lengths().shortest && length <= lengths().longest, "a length of the task's");
  Draws draws(stream_, index);
  const PasskeyPrompt p = passkey_.draw(passkey_.fillers(length), &draws);
  out->clear();
  for (const int32_t id : p.prompt) out->add(id);
  for (int64_t i = 0; i < std::ssize(p.answer); ++i) {
    const int32_t id = p.answer[static_cast<size_t>(i)];
    if (i >= p.given) out->targets.back() = id;
    if (i + 1 < std::ssize(p.answer)) out->add(id);
  }
}

}  // namespace bamtrain
