#pragma once
// BAM's passkey: a number in the midst of text that says nothing, which the end of the prompt asks
// for (its published evaluation). The pieces of a prompt are tokenised apart, without BOS or EOS,
// and their ids joined:
//
//   task, filler x before, needle, filler x (fillers - before), question
//
// With Mistral's tokenizer they have 31, 24, 25 and 10. BAM's figure of attention counts 32 for the
// task: with a BOS before it, which is an option here.

#include <array>
#include <cstdint>
#include <iterator>
#include <string>

#include "data/tokenizer.h"
#include "tasks/draws.h"
#include "tasks/passkey.h"

namespace bamtrain {

/// What stands at the prompt's end.
enum class PasskeyQuestion {
  published,  // "What is the pass key? The pass key is"
  paper,      // "The passkey is:", as its section 3.1 prints it
};

struct PasskeyOptions {
  int64_t digits = 5;         // of the key
  int64_t prefix_digits = 0;  // of them, how many are read with the prompt
  PasskeyQuestion question = PasskeyQuestion::published;
  bool bos = false;  // the tokenizer's BOS before the task
};

struct PasskeyPrompt {
  std::string key;
  int64_t fillers = 0, before = 0;  // of all, those that stand before the needle
  Symbols prompt;                   // its length is reported: no id of the answer counts
  Symbols answer;                   // of " KEY": a piece for the space, then one for each digit
  /// Ids of the answer that are read with the prompt: the space and the prefix. Right is an answer
  /// whose others all are, each behind the right ones before it.
  int64_t given = 1;
};

/// The prompts of a tokenizer.
class Passkey {
 public:
  /// REQUIRES: 1 <= digits <= kMostPasskeyDigits, 0 <= prefix_digits < digits; the tokenizer
  /// outlives it. Error (ExitCode::config) at "{tokenizer}" for one that does not make one id of
  /// each digit, or has no BOS where one is wanted.
  Passkey(const Tokenizer& tokenizer, const PasskeyOptions& options);

  const PasskeyOptions& options() const { return options_; }
  /// Ids of a prompt without filler, and of a filler.
  int64_t fixed() const { return std::ssize(task_) + needle_ + std::ssize(question_); }
  int64_t filler() const { return std::ssize(filler_); }
  /// The most fillers of a prompt of at most `length` ids; none for length 0, which asks for the
  /// prompt without filler, of fixed() ids. (Published: so does every length below fixed(), whose
  /// prompt is longer than it says.) Error (ExitCode::config) at "{length}" for these others.
  int64_t fillers(int64_t length) const;

  /// REQUIRES: a key of `digits` decimal digits, 0 <= before <= fillers.
  PasskeyPrompt prompt(const std::string& key, int64_t fillers, int64_t before) const;

  /// Uniform, its first digit not 0.
  std::string draw_key(Draws* draws) const;
  /// A fresh key, at a place drawn uniformly from the fillers + 1 that there are.
  PasskeyPrompt draw(int64_t fillers, Draws* draws) const;

 private:
  Symbols answer(const std::string& key) const;
  Symbols needle_of(const std::string& key) const;
  void check_needle(const std::string& key, const Symbols& ids) const;
  [[noreturn]] void refuse(const std::string& text, const Symbols& ids) const;

  const Tokenizer& tokenizer_;
  PasskeyOptions options_;
  Symbols task_, filler_, question_;
  int32_t space_ = 0;
  std::array<int32_t, 10> ids_ = {};  // of digits
  int64_t needle_ = 0;                // its ids, whatever the key
};

/// Fillers before the needle of prompt i of `prompts` at one length: the floor of
/// fillers x i / (prompts - 1), so that the first stands before all and the last behind all.
/// REQUIRES: 0 <= i < prompts; prompts >= 2.
int64_t passkey_place(int64_t fillers, int64_t i, int64_t prompts);

}  // namespace bamtrain
