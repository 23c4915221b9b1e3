#pragma once
// Passkeys to train on: each sequence a fresh key at a place drawn among the fillers.

#include <memory>
#include <string>

#include "data/tokenizer.h"
#include "prompts/passkey.h"
#include "tasks/task.h"

namespace bamtrain {

/// What `options`, as passkey_task() declares them, ask of prompts. Error as
/// check_passkey_digits.
PasskeyOptions passkey_options(const Options& options);

class PasskeyTask final : public Task {
 public:
  /// `options` and `lengths` as passkey_task() declares them, `set` as Task's. Errors as
  /// Tokenizer::open; (ExitCode::config) for one that Passkey refuses, for lengths that
  /// hold no prompt, where no digit is asked for, whose where() is "{KEY}", and at model.vocab for
  /// a tokenizer with ids past `inputs`.
  static std::unique_ptr<PasskeyTask> open(const Options& options, LengthRange lengths,
                                           int64_t inputs, uint64_t seed, const std::string& set);

  std::string symbol(int32_t id) const override { return tokenizer_->piece(id); }
  std::string label(int32_t id) const override { return tokenizer_->piece(id); }
  /// The prompt, the space before the answer and its digits but the last are inputs; targets are
  /// the digits that are asked for.
  void draw(int64_t index, int64_t length, Example* out) const override;

 private:
  PasskeyTask(std::unique_ptr<const Tokenizer> tokenizer, const PasskeyOptions& asked,
              const Options& identity, LengthRange lengths, uint64_t seed, const std::string& set);

  std::unique_ptr<const Tokenizer> tokenizer_;
  Passkey passkey_;
  Rng stream_;
};

}  // namespace bamtrain
