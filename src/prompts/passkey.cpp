#include "prompts/passkey.h"

#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "core/join.h"
#include "prompts/drawn_text.h"
#include "prompts/filler.h"

namespace bamtrain {

namespace {

constexpr const char* kTask =
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there.";

const char* text_of(PasskeyQuestion question) {
  switch (question) {
    case PasskeyQuestion::published:
      return "What is the pass key? The pass key is";
    case PasskeyQuestion::paper:
      return "The passkey is:";
  }
  broken_contract("a question");
}

void append_symbols(const Symbols& ids, Symbols* all) {
  all->insert(all->end(), ids.begin(), ids.end());
}

}  // namespace

Passkey::Passkey(const Tokenizer& tokenizer, const PasskeyOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      task_(tokenizer.encode(kTask)),
      filler_(tokenizer.encode(kFiller)),
      question_(tokenizer.encode(text_of(options.question))) {
  require(options.digits >= 1 && options.digits <= kMostPasskeyDigits &&
              options.prefix_digits >= 0 && options.prefix_digits < options.digits,
          "a key with digits that are asked for");
  if (options.bos) {
    if (tokenizer.bos() < 0) {
      throw Error(ExitCode::config, "{tokenizer}", "a tokenizer with BOS", "one without",
                  "set bos to false, or name another");
    }
    task_.insert(task_.begin(), tokenizer.bos());
  }
  for (size_t digit = 0; digit < ids_.size(); ++digit) {
    const std::string text = " " + std::to_string(digit);
    const Symbols ids = tokenizer.encode(text);
    if (ids.size() != 2) refuse(text, ids);
    space_ = ids[0];
    ids_[digit] = ids[1];
  }
  // Merges only join neighbours, and in three-digit keys each digit meets every other and both
  // ends.
  needle_ = std::ssize(needle_of("100"));
  for (int number = 100; number < 1000; ++number) {
    const std::string key = std::to_string(number);
    answer(key);
    check_needle(key, needle_of(key));
  }
  needle_ = std::ssize(needle_of(std::string(static_cast<size_t>(options.digits), '1')));
}

int64_t Passkey::fillers(int64_t length) const {
  require(length >= 0, "a length");
  if (length == 0) return 0;
  if (length < fixed()) {
    throw Error(ExitCode::config, "{length}",
                fmt::format("0, for a prompt without filler, or at least its {} tokens", fixed()),
                std::to_string(length), "raise it");
  }
  return (length - fixed()) / filler();
}

PasskeyPrompt Passkey::prompt(const std::string& key, int64_t fillers, int64_t before) const {
  require(std::ssize(key) == options_.digits && before >= 0 && before <= fillers,
          "a key of the digits, at a place among the fillers");
  PasskeyPrompt p;
  p.key = key;
  p.fillers = fillers;
  p.before = before;
  p.answer = answer(key);
  p.given = 1 + options_.prefix_digits;
  const Symbols needle = needle_of(key);
  check_needle(key, needle);
  p.prompt.reserve(static_cast<size_t>(fixed() + fillers * filler()));
  append_symbols(task_, &p.prompt);
  for (int64_t i = 0; i < before; ++i) append_symbols(filler_, &p.prompt);
  append_symbols(needle, &p.prompt);
  for (int64_t i = before; i < fillers; ++i) append_symbols(filler_, &p.prompt);
  append_symbols(question_, &p.prompt);
  return p;
}

std::string Passkey::draw_key(Draws* draws) const { return draw_number(options_.digits, draws); }

PasskeyPrompt Passkey::draw(int64_t fillers, Draws* draws) const {
  const std::string key = draw_key(draws);
  return prompt(key, fillers, draws->between(0, fillers));
}

/// The ids of " KEY". Throws Error if they are not those of the space and of each digit.
Symbols Passkey::answer(const std::string& key) const {
  const Symbols ids = tokenizer_.encode(" " + key);
  Symbols apart = {space_};
  for (const char digit : key) apart.push_back(ids_.at(static_cast<size_t>(digit - '0')));
  if (ids != apart) refuse(" " + key, ids);
  return ids;
}

Symbols Passkey::needle_of(const std::string& key) const {
  return tokenizer_.encode(
      fmt::format("The pass key is {}. Remember it. {} is the pass key.", key, key));
}

/// All needles must have one length, else fixed() would be wrong.
void Passkey::check_needle(const std::string& key, const Symbols& ids) const {
  if (std::ssize(ids) != needle_) refuse(key + ".", ids);
}

void Passkey::refuse(const std::string& text, const Symbols& ids) const {
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back("\"" + tokenizer_.piece(id) + "\"");
  throw Error(ExitCode::config, "{tokenizer}",
              "a tokenizer with a token for a space and one for each digit of a number",
              fmt::format("\"{}\" as {}", text, join(pieces)),
              "name one that splits numbers into digits, such as Mistral's SentencePiece models");
}

int64_t passkey_place(int64_t fillers, int64_t i, int64_t prompts) {
  require(fillers >= 0 && prompts >= 2 && i >= 0 && i < prompts, "a prompt of several");
  return fillers * i / (prompts - 1);
}

}  // namespace bamtrain
