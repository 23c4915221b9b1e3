#pragma once
// Incremental decoding of one sequence with a KV cache: chunked prefill, then decode steps.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model.h"

namespace bamtrain {

/// Throws Error (ExitCode::config) if the model does not support incremental decoding of any
/// length.
void check_incremental_decoding(const ModelConfig& config);

/// The longest sequence that a host evaluates in one forward pass, in tokens.
inline constexpr int64_t kFullPassTokens = 8192;

/// Whether chunked prefill is as fast as one forward pass. Otherwise a host computes attention row
/// by row, or the model does not support incremental decoding.
bool supports_chunked_prefill(const ModelConfig& config, Backend& backend);

/// Whether a sequence of T tokens is better evaluated by chunked prefill: a long one, if the model
/// supports it.
bool prefers_chunked_prefill(const ModelConfig& config, Backend& backend, int64_t T);

/// Evaluates one sequence of T tokens by chunked prefill: losses (T) and, if given, likeliest (T),
/// as Network::evaluate. Calls progress(tokens evaluated so far), if given. REQUIRES: `model` is
/// planned for generation.
void evaluate_in_chunks(Model& model, const int32_t* tokens, const int32_t* targets, int64_t T,
                        std::optional<int64_t> document_start, double* losses,
                        int32_t* likeliest = nullptr,
                        const std::function<void(int64_t)>& progress = {});

class IncrementalDecoder {
 public:
  /// For up to `longest` tokens. Allocates nothing yet. Only this decoder may use `backend`; config
  /// and lengths as for Model. Throws Error (ExitCode::config) as check_incremental_decoding, or if
  /// the prior or the scale does not support that length.
  IncrementalDecoder(const ModelConfig& config, int64_t training_length, Backend& backend,
                     Dtype activations, std::optional<int64_t> document_start, int64_t longest);

  int64_t planned_bytes() const { return arena_.total_bytes(); }
  /// Allocates and starts an empty sequence. Every append reads `master_weights`.
  void commit(const Tensor& master_weights);

  /// Logits (1, V) P after the last of these tokens, in host memory, valid until the next call.
  /// REQUIRES: at least one token; at most `longest` in total.
  Tensor append(std::span<const int32_t> tokens);
  /// Starts another sequence.
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
  std::vector<char> host_logits_;  // its host copy, if the backend's memory is not the host's
};

}  // namespace bamtrain
