#pragma once
// Passkeys for training: each sequence has a new key at a random place among the fillers.

#include <memory>
#include <string>

#include "data/tokenizer.h"
#include "prompts/passkey.h"
#include "tasks/task.h"

namespace bamtrain {

/// Converts `options`, as declared by passkey_task(). Errors: as check_passkey_digits.
PasskeyOptions passkey_options(const Options& options);

class PasskeyTask final : public Task {
 public:
  /// `options` and `lengths` as declared by passkey_task(), `set` as Task's. Errors: as
  /// Tokenizer::open; Error (ExitCode::config) for a tokenizer that Passkey refuses, for lengths
  /// too short for a prompt and for no requested digit, with where() "{KEY}"; at model.vocab for a
  /// tokenizer with ids past `inputs`.
  static std::unique_ptr<PasskeyTask> open(const Options& options, LengthRange lengths,
                                           int64_t inputs, uint64_t seed, const std::string& set);

  std::string symbol(int32_t id) const override { return tokenizer_->piece(id); }
  std::string label(int32_t id) const override { return tokenizer_->piece(id); }
  /// Inputs are the prompt, the space before the answer and its digits without the last; targets
  /// are the requested digits.
  void draw(int64_t index, int64_t length, Example* out) const override;

 private:
  PasskeyTask(std::unique_ptr<const Tokenizer> tokenizer, const PasskeyOptions& asked,
              const Options& identity, LengthRange lengths, uint64_t seed, const std::string& set);

  std::unique_ptr<const Tokenizer> tokenizer_;
  Passkey passkey_;
  Rng stream_;
};

}  // namespace bamtrain
