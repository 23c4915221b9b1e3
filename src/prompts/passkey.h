#pragma once
// BAM's passkey task: a number inside filler text, for which the end of the prompt asks (its
// published evaluation). The parts of a prompt are tokenized separately, without BOS or EOS, and
// their ids concatenated:
//
//   task, filler x before, needle, filler x (fillers - before), question
//
// With Mistral's tokenizer task, filler, needle and question have 31, 24, 25 and 10 tokens. BAM's
// attention figure counts 32 for the task: it includes a BOS, which is an option here.

#include <array>
#include <cstdint>
#include <iterator>
#include <string>

#include "data/tokenizer.h"
#include "tasks/draws.h"
#include "tasks/passkey.h"

namespace bamtrain {

/// The end of the prompt.
enum class PasskeyQuestion {
  published,  // "What is the pass key? The pass key is"
  paper,      // "The passkey is:", as in the paper's section 3.1
};

struct PasskeyOptions {
  int64_t digits = 5;         // digits of the key
  int64_t prefix_digits = 0;  // how many of them belong to the prompt
  PasskeyQuestion question = PasskeyQuestion::published;
  bool bos = false;  // put the tokenizer's BOS before the task
};

struct PasskeyPrompt {
  std::string key;
  int64_t fillers = 0, before = 0;  // all fillers, and those before the needle
  Symbols prompt;                   // its length is reported: without ids of the answer
  Symbols answer;                   // ids of " KEY": the space, then one per digit
  /// Leading ids of the answer that belong to the prompt: the space and the prefix. An answer is
  /// right if all other ids are, each given the right ones before it.
  int64_t given = 1;
};

/// Makes prompts with a tokenizer.
class Passkey {
 public:
  /// REQUIRES: 1 <= digits <= kMostPasskeyDigits, 0 <= prefix_digits < digits; the tokenizer must
  /// outlive it. Throws Error (ExitCode::config) at "{tokenizer}" if it does not make one id per
  /// digit, or has no BOS but `bos` is set.
  Passkey(const Tokenizer& tokenizer, const PasskeyOptions& options);

  const PasskeyOptions& options() const { return options_; }
  /// Number of ids of a prompt without filler, and of a filler.
  int64_t fixed() const { return std::ssize(task_) + needle_ + std::ssize(question_); }
  int64_t filler() const { return std::ssize(filler_); }
  /// The most fillers in a prompt of at most `length` ids; 0 for length 0, the prompt without
  /// filler of fixed() ids. Throws Error (ExitCode::config) at "{length}" for lengths between 0 and
  /// fixed(). (The published code uses no filler there, so its prompt exceeds the length.)
  int64_t fillers(int64_t length) const;

  /// REQUIRES: a key of `digits` decimal digits, 0 <= before <= fillers.
  PasskeyPrompt prompt(const std::string& key, int64_t fillers, int64_t before) const;

  /// A uniform key whose first digit is not 0.
  std::string draw_key(Draws* draws) const;
  /// A new key at a uniform place among the fillers + 1 possible ones.
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
  std::array<int32_t, 10> ids_ = {};  // ids of the digits
  int64_t needle_ = 0;                // number of its ids, for any key
};

/// Fillers before the needle of prompt i of `prompts` at one length: floor(fillers x i / (prompts -
/// 1)), so the first needle precedes all fillers and the last follows all. REQUIRES: 0 <= i <
/// prompts; prompts >= 2.
int64_t passkey_place(int64_t fillers, int64_t i, int64_t prompts);

}  // namespace bamtrain
