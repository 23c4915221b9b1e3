#pragma once
// A text that a model reads token by token, or many at a time, and what it expects next: keys and
// values of what was read stay in memory.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model.h"

namespace bamtrain {

/// Error (ExitCode::config) where the model knows no text that grows, of any length.
void check_grows(const ModelConfig& config);

/// Tokens of a text up to which it is read as a whole on a host.
inline constexpr int64_t kReadWhole = 8192;

/// Whether the model's attention takes pieces of a text as fast as the whole. Others' rows go one
/// by one on a host, or know no texts that grow.
bool takes_pieces(const ModelConfig& config, Backend& backend);

/// Whether a text of T tokens is better read in pieces than as a whole: long ones, of models that
/// take them.
bool reads_in_pieces(const ModelConfig& config, Backend& backend, int64_t T);

/// Of one text of T tokens that `model` reads in pieces, planned for generation: as
/// Network::evaluate's, losses (T) and, where given, likeliest (T). progress(tokens that are read),
/// where given.
void evaluate_in_pieces(Model& model, const int32_t* tokens, const int32_t* targets, int64_t T,
                        std::optional<int64_t> document_start, double* losses,
                        int32_t* likeliest = nullptr,
                        const std::function<void(int64_t)>& progress = {});

class GrowingText {
 public:
  /// A text of up to `longest` tokens. Takes no memory yet. `backend` is this text's alone;
  /// masters, config and lengths as for Model. Error (ExitCode::config) where prior or scale know
  /// no texts of that length, and that of check_grows().
  GrowingText(const ModelConfig& config, int64_t training_length, Backend& backend,
              Dtype activations, std::optional<int64_t> document_start, int64_t longest);

  int64_t planned_bytes() const { return arena_.total_bytes(); }
  /// Takes the memory and begins. The masters are read in every append.
  void commit(const Tensor& masters);

  /// Logits (1, V) P after the last of these tokens, in host memory, valid until the next call.
  /// REQUIRES: at least one; no more in all than `longest`.
  Tensor append(std::span<const int32_t> tokens);
  /// Begins another text.
  void clear();

  int64_t longest() const { return longest_; }
  int64_t vocab() const { return model_.config().vocab; }

 private:
  Backend& backend_;
  std::optional<int64_t> document_start_;
  int64_t longest_;
  Arena arena_;
  Model model_;
  Tensor logits_;                  // (1, V) P
  std::vector<char> host_logits_;  // likewise, of a backend whose memory is not the host's
};

}  // namespace bamtrain
