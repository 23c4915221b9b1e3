#pragma once
// The decoder: forward, and below it the hand-written backward pass, on any backend.

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/kv_cache.h"
#include "model/layer_observer.h"
#include "model/mechanisms.h"
#include "model/network.h"

namespace bamtrain {

/// What the backward pass reads of one layer. N = B*T, Q = H*D, W = (H + 2 K) D + gate columns.
/// Some tensors may be in memory shared by all layers, see Recompute. Attention reads norm1, the
/// mlp norm2. Each is the norm of a sum; the stream continues from the sum, or with
/// NormPosition::post from the norm.
struct LayerActivations {
  Tensor residual;  // (N, C) A, the stream before the block; post: the input of norm1; in the first
                    // block the embedding, which attention reads directly
  Tensor norm1;     // (N, C) A
  Tensor stats1;    // (N, 2) P
  Tensor qkv;       // (N, W) A: q, k (rotated if the prior rotates), v, gates
  Tensor attention;  // (N, Q) A
  AttentionSaved saved;
  Tensor branch1;  // (N, C) A, only with NormPosition::both: attention's product before its norm
  Tensor branch_stats1;  // (N, 2) P
  Tensor residual2;      // (N, C) A, the stream between attention and mlp; post: the input of norm2
  Tensor norm2;          // (N, C) A
  Tensor stats2;         // (N, 2) P
  Tensor hidden;         // (N, 2F) A, or (N, F) if the mlp is not gated
  Tensor activation;     // (N, F) A
  Tensor branch2;        // as branch1, for the mlp
  Tensor branch_stats2;
};

/// Without a weight there is no norm.
struct NormParameters {
  const Parameter *weight = nullptr, *bias = nullptr;
};

/// The end of a branch: a product and, with NormPosition::both, its norm.
struct BranchEnd {
  const Parameter *weight, *bias;
  NormParameters norm;
};

/// The parameters of one block, found by name once; null if the model has none. Matrices that one
/// product reads together are listed under the first one's name.
struct BlockParameters {
  NormParameters norm1;  // before attention; post: after the previous block's mlp, none in block 0
  const Parameter *qkv, *qkv_bias;        // q_proj; k_proj and v_proj follow
  BranchEnd out;                          // o_proj
  NormParameters norm2;                   // before the mlp
  const Parameter *hidden, *hidden_bias;  // gate_proj, and up_proj follows; not gated: up_proj
  BranchEnd down;                         // down_proj
};

/// A state of incremental decoding that rollback() restores.
struct DecodeState {
  int64_t tokens = 0;
  std::vector<int64_t> documents;  // starts of the sequences' last documents, relative to here
};

class Model final : public Network {
 public:
  /// `sequence_length` is T of training; A the dtype of activations.
  Model(const ModelConfig& config, int64_t sequence_length, Backend& backend, Dtype activations);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const override { return config_; }
  const ParameterLayout& parameters() const override { return layout_; }
  const Randomization& randomization() const override { return mechanisms_.randomization(); }
  int64_t draws() const override { return mechanisms_.draws(); }

  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use, Recompute recompute = Recompute::none,
            bool attention_statistics = false) override;
  void set_master_weights(Tensor master_weights) override;
  void refresh() override;
  const Tensor& rounded_weights() const override { return compute_; }
  void refresh_mechanisms() override;
  void load(const int32_t* tokens, const int32_t* targets, int64_t T,
            std::optional<int64_t> document_start, const int32_t* positions = nullptr,
            const int32_t* lengths = nullptr) override;
  /// The embedding and the first block, the others a few at a time, the head; then back.
  int parts() const override { return 2 * block_parts() + 1; }
  void forward_backward_part(int part, double scale, const Tensor& gradients,
                             const Tensor& loss) override;
  std::vector<FlatRange> ranges_of(int part) const override;
  void check_length(int64_t T) const override;
  void evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                std::optional<int64_t> document_start, double* losses,
                double* attention_statistics = nullptr, int32_t* likeliest = nullptr,
                const int32_t* positions = nullptr, const int32_t* lengths = nullptr) override;
  void logits(const int32_t* tokens, int64_t b, int64_t t, std::optional<int64_t> document_start,
              Tensor out, const int32_t* lengths = nullptr) override;

  /// Sets the observer of later passes; null: none. It must outlive them.
  void observe(LayerObserver* observer) { observer_ = observer; }

  // Batched incremental decoding. REQUIRES: planned for generation.

  /// Starts a batch of padding.size() sequences, at most the planned B. The first padding[b] tokens
  /// of sequence b are left padding of any value, which no token of the sequence sees.
  void begin_decoding(std::span<const int64_t> padding);
  /// Appends n tokens, at most kMaxPrefillChunk, to each sequence: tokens (batch, n). Writes logits
  /// in P to `out`: (batch, O) after the last token of each, or (batch n, O) after every token; may
  /// be empty. If it throws, it appends nothing. REQUIRES: no more tokens in total than planned.
  void append(const int32_t* tokens, int64_t n, std::optional<int64_t> document_start, Tensor out);
  /// The same with the losses of targets (batch, n), as in evaluate().
  void append(const int32_t* tokens, const int32_t* targets, int64_t n,
              std::optional<int64_t> document_start, double* losses, int32_t* likeliest = nullptr);
  /// Tokens of each sequence so far, padding included.
  int64_t cached_tokens() const { return kv_cache_.tokens(); }
  /// A state for rollback() after at most kMaxPrefillChunk further tokens.
  DecodeState decode_state();
  void rollback(const DecodeState& state);

 private:
  void load_batch(const int32_t* tokens, const int32_t* targets, int64_t B, int64_t T,
                  std::optional<int64_t> document_start, const int32_t* positions,
                  const int32_t* lengths);
  /// Computes first_key, positions and last_key of the batch in host memory.
  void lay_out(const int32_t* tokens, std::optional<int64_t> document_start,
               const int32_t* lengths);
  /// Computes the stream after the last block, and its norm: (N, C) A. attention_statistics as in
  /// evaluate().
  void forward(double* attention_statistics = nullptr);
  /// Losses and likeliest of the current batch after its forward pass, as in evaluate().
  void score(const int32_t* targets, double* losses, int32_t* likeliest);
  /// The forward pass of one prefill chunk, which is then in the KV cache.
  void prefill_chunk(const int32_t* tokens, int64_t n, std::optional<int64_t> document_start);
  void sum_attention_statistics(int64_t l, const AttentionSaved& saved, const Attention& a,
                                double* to);

  // --- block.cpp
  void forward_block(int64_t l, double* attention_statistics);
  void attend(int64_t l, double* attention_statistics = nullptr);
  void rotate(int64_t l, const Tensor& q, const Tensor& k, bool inverse);
  void append_to_kv_cache(int64_t l);
  void expand(int64_t l);
  void contract(int64_t l);
  void recompute_block(int64_t l);
  void backward_block(int64_t l, const Tensor& gradients);
  int block_parts() const;
  /// Blocks that a part, not the head's, goes through: [begin, end).
  FlatRange blocks_of_part(int part) const;
  /// The first part that reads a matrix (Parameter::rounded).
  int part_of(const Parameter& p) const;
  BlockParameters find_block(int64_t l) const;
  NormParameters find_norm(const std::string& name) const;
  bool causal() const { return config_.attention.causal; }
  bool post() const { return config_.norm_position == NormPosition::post; }
  /// What the next branch is added to: the sum, or its norm.
  const Tensor& stream(const Tensor& sum, const Tensor& norm) const { return post() ? norm : sum; }
  const Tensor& attention_input(const LayerActivations& x, int64_t l) const;
  Tensor stream_behind(int64_t l) const;
  void norm_forward(const Tensor& sum, const Tensor& y, const Tensor& stats, const Tensor& residual,
                    const Tensor& branch, const NormParameters& p);
  void norm_backward(const Tensor& dsum, const Tensor& dy, const Tensor& sum, const Tensor& stats,
                     const NormParameters& p, const Tensor& gradients);
  void stream_backward(const Tensor& sum, const Tensor& stats, const NormParameters& p,
                       const Tensor& gradients);
  void branch_forward(const BranchEnd& p, const Tensor& in, const Tensor& product,
                      const Tensor& stats);
  void branch_backward(const Tensor& din, const BranchEnd& p, const Tensor& in,
                       const Tensor& product, const Tensor& stats, const Tensor& gradients);

  void embedding_forward();
  void final_norm_forward();
  void embedding_backward(const Tensor& gradients);
  /// Computes the first R losses from rows (R, C) of the final norm's output, chunk by chunk. With
  /// gradients also dnorm and the gradient of the head's weight. likeliest: also writes likeliest_,
  /// without gradients.
  void head(const Tensor& norm, double scale, const Tensor* gradients, bool likeliest = false);
  /// Copies these rows of the final norm's output to dst (R, C). Overwrites the batch's tokens.
  void gather_norm(const Tensor& dst, const std::vector<int32_t>& rows);

  void clear_beside_gates(int64_t l, const Tensor& flat);
  void plan_layers(Arena& arena, int64_t B, int64_t T, bool training);
  LayerActivations layer(int64_t l) const;
  Attention attention_of(int64_t l);
  // Parts of planned tensors that the current batch uses.
  AttentionSaved saved_of(const LayerActivations& x) const;
  Tensor positions() const;
  Tensor random_positions(int64_t l) const;
  Tensor embedding_positions() const;  // (N)
  /// A layer's first_key or last_key, from those of all windows.
  Tensor of_window(const Tensor& keys, int64_t l) const;
  /// q, k, v and gates of the batch.
  Tensor qkv(int64_t l) const { return rows(layer(l).qkv); }
  const BlockParameters& block(int64_t l) const { return blocks_[static_cast<size_t>(l)]; }
  /// The weights that products read.
  const Tensor& weights() const { return compute_ ? compute_ : master_weights_; }
  Tensor rows(const Tensor& t) const;
  int64_t hidden_width() const { return (is_gated(config_.mlp.kind) ? 2 : 1) * config_.mlp.hidden; }
  double embed_scale() const {
    return config_.embed_scale ? std::sqrt(static_cast<double>(config_.width)) : 1;
  }
  int64_t logits_stride() const;
  /// Width of the product that computes queries, keys, values and gates.
  int64_t qkv_width() const {
    return (config_.heads + 2 * config_.kv_heads) * config_.head_dim() + layout_.gate_columns();
  }
  /// Parts of it (N, W): heads (B, T, count, D), starting at head `begin` of q, k, v;
  /// gates (B, T, G).
  Tensor heads_of(const Tensor& fused, int64_t begin, int64_t count) const;
  Tensor gates_of(const Tensor& fused) const;

  ModelConfig config_;
  Backend& backend_;
  Dtype dtype_;  // A
  ParameterLayout layout_;
  std::vector<BlockParameters> blocks_;
  const Parameter *embedding_, *position_embedding_;
  NormParameters final_norm_;  // before the head
  const Parameter *head_, *head_bias_;
  Mechanisms mechanisms_;
  int64_t max_B_ = 0, max_T_ = 0;  // planned
  int64_t B_ = 0, T_ = 0;          // of the current batch
  bool drawn_ = false;             // whether its positions or distances are random
  KvCache kv_cache_;               // for incremental decoding
  int64_t texts_ = 0;              // sequences being decoded
  // By sequence, relative to the batch: start of the document of the token before the batch, and of
  // the batch's last token. If it is positive, the tokens before it are padding.
  std::vector<int64_t> documents_, last_documents_;
  int64_t chunk_ = 0;  // rows per chunk of the head
  Recompute recompute_ = Recompute::none;
  LayerObserver* observer_ = nullptr;

  // Host buffers of the batch's inputs and of its token losses.
  std::vector<int32_t> host_first_key_, host_last_key_, host_positions_;  // in the device's layout
  std::vector<char> host_losses_;                                         // (N) P
  std::vector<char> host_rows_;  // (B, H, T) P, or nonzero blocks
  // Rows with a target, if not all rows have one: their numbers, targets and results.
  std::vector<int32_t> scored_rows_, scored_targets_, scored_likeliest_;

  Tensor master_weights_;                 // (elements) P, owned by the caller
  Tensor compute_;                        // (elements) A: rounded weights; empty if A is P
  Tensor tokens_;                         // (N) i32
  Tensor targets_;                        // (N) i32
  Tensor first_key_;                      // (windows, B, T) i32, of the current batch
  Tensor last_key_;                       // likewise; empty if attention is causal
  Tensor positions_;                      // (B, T) i32
  Tensor random_positions_;               // (draws, B, T) i32, if they are random
  std::vector<LayerActivations> layers_;  // L: what each layer keeps
  LayerActivations shared_;               // what layers share
  Tensor branch_;                         // (N, C) A: what a block adds to the stream
  Tensor final_;                          // (N, C) A: the stream before the final norm
  Tensor norm_;                           // (N, C) A: after it
  Tensor stats_;                          // (N, 2) P
  Tensor logits_;                         // (chunk, O padded) P
  Tensor dlogits_;    // (chunk, O padded) A; empty if A is P: then in the logits' memory
  Tensor losses_;     // (N) P
  Tensor likeliest_;  // (N) i32
  Tensor entropy_,
      nonzero_keys_;    // (B, H, T) P: of the current layer, for attention statistics
  Tensor dstream_;      // (N, C) A
  Tensor dnorm_;        // (N, C) A
  Tensor dqkv_;         // (N, W) A
  Tensor dattention_;   // (N, Q) A
  Tensor dactivation_;  // (N, F) A
};

}  // namespace bamtrain
