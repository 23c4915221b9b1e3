#pragma once
// The model of the task max_retrieval (Velickovic et al. 2024, as ASEntmax trains it): one
// attention between small networks f = output(act(hidden(x))), with biases everywhere.
//
//   items    psi_x of an item's features: its priority, then one of kClasses
//   query    psi_q of the query's number
//   q = W_q query + b_q,   k = W_k items + b_k,   v = W_v items + b_v
//   logits   phi of the attention output of q over all k and v
//
// It runs as causal attention with one head. Row 0 of a sequence is the query and sees itself. Row
// i sees the items 1 .. i. Every row has the q of the sequence's query. So n_i = i. The last item's
// row has the target and sees all items. No row that counts sees the padding after it. Scales that
// read the row's input read psi_q.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/mechanisms.h"
#include "model/network.h"

namespace bamtrain {

/// One of the small networks f, with parameters NAME.hidden and NAME.output.
struct SmallNetwork {
  const Parameter *hidden, *hidden_bias, *output, *output_bias;
  Tensor before, after;  // (N, F) A, around the activation; the adjoint overwrites `before`
};

class MaxRetrieval final : public Network {
 public:
  /// Throws Error (ExitCode::config) for activations in bf16. REQUIRES: one layer, one head, prior
  /// nope, an activation without gate, a normalizer that gives weight to a row's own key.
  MaxRetrieval(const ModelConfig& config, int64_t training_length, Backend& backend,
               Dtype activations);
  MaxRetrieval(const MaxRetrieval&) = delete;
  MaxRetrieval& operator=(const MaxRetrieval&) = delete;

  const ModelConfig& config() const override { return config_; }
  const ParameterLayout& parameters() const override { return layout_; }
  const Randomization& randomization() const override { return mechanisms_.randomization(); }
  int64_t draws() const override { return mechanisms_.draws(); }

  /// REQUIRES: no generation, no recompute, no attention_statistics.
  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use, Recompute recompute,
            bool attention_statistics) override;
  void set_master_weights(Tensor master_weights) override;
  void refresh() override { refresh_mechanisms(); }
  const Tensor& rounded_weights() const override { return rounded_; }
  void refresh_mechanisms() override { mechanisms_.refresh(master_weights_); }
  void load(const int32_t* tokens, const int32_t* targets, int64_t T,
            std::optional<int64_t> document_start, const int32_t* positions,
            const int32_t* lengths) override;
  void forward_backward_part(int part, double scale, const Tensor& gradients,
                             const Tensor& loss) override;
  void check_length(int64_t T) const override { mechanisms_.check_length(T); }
  void evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                std::optional<int64_t> document_start, double* losses, double* attention_statistics,
                int32_t* likeliest, const int32_t* positions, const int32_t* lengths) override;
  void logits(const int32_t* tokens, int64_t b, int64_t t, std::optional<int64_t> document_start,
              Tensor out, const int32_t* lengths) override;

 private:
  SmallNetwork find(const std::string& name) const;
  void load_batch(const int32_t* tokens, const int32_t* targets, int64_t B, int64_t T);

  /// Computes the pooled values, attention_.
  void forward();
  void backward(const Tensor& gradients);
  void run(const SmallNetwork& f, const Tensor& out, const Tensor& in);
  /// din may be empty.
  void run_backward(const SmallNetwork& f, const Tensor& din, const Tensor& dout, const Tensor& in,
                    const Tensor& gradients);
  /// The logits (N, O), later overwritten by their adjoint.
  Tensor answers() const;

  Attention attention();
  AttentionSaved saved() const;
  /// Columns of a product (N, W) from `begin` on as the only head (B, T, 1, C).
  Tensor head_of(const Tensor& product, int64_t begin) const;
  /// (B, T, G).
  Tensor gates_of(const Tensor& product) const;
  void clear_beside_gates(const Tensor& flat);
  Tensor rows(const Tensor& t) const { return t.slice(0, 0, B_ * T_); }
  int64_t query_width() const { return config_.width + layout_.gate_columns(); }

  ModelConfig config_;
  Backend& backend_;
  ParameterLayout layout_;
  SmallNetwork items_, query_, answer_;
  const Parameter *q_, *q_bias_;    // gates follow
  const Parameter *kv_, *kv_bias_;  // k; v follows
  Mechanisms mechanisms_;
  int64_t max_B_ = 0, max_T_ = 0;  // planned
  int64_t B_ = 0, T_ = 0;          // of the current batch

  std::vector<char> host_items_, host_query_, host_losses_;  // in the device's layout
  std::vector<int32_t> host_first_key_;

  Tensor master_weights_;   // (elements) P, owned by the caller
  Tensor rounded_;          // empty, since A is P
  Tensor targets_;          // (N) i32
  Tensor first_key_;        // (N) i32
  Tensor item_features_;    // (N, kFeatureColumns) A
  Tensor query_features_;   // likewise; all rows have those of the sequence's query
  Tensor item_;             // (N, C) A: psi_x
  Tensor asked_;            // (N, C) A: psi_q
  Tensor q_gates_;          // (N, C + G) A
  Tensor k_v_;              // (N, 2 C) A
  Tensor attention_;        // (N, C) A
  AttentionSaved saved_;    // one head
  Tensor logits_;           // (N, O padded) P
  Tensor losses_;           // (N) P
  Tensor likeliest_;        // (N) i32
  Tensor dstream_;          // (N, C) A
  Tensor dactivation_;      // (N, F) A
  Tensor dq_gates_, dk_v_;  // shaped as q_gates_, k_v_
};

}  // namespace bamtrain
