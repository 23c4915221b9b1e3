// The memory plan of a model: the batch, activations, gradients, scratch.

#include <algorithm>

#include "core/checked.h"
#include "model/model.h"
#include "model/projection_views.h"

namespace bamtrain {

namespace {
// Bytes of fp32 logits that exist at a time: large enough for products at full speed. On a GPU each
// chunk reads and writes the gradient of the head's weight, which takes as long as a product of
// some thousand rows.
constexpr int64_t kHostLogitBytes = int64_t{64} << 20, kDeviceLogitBytes = int64_t{512} << 20;
// For incremental decoding, which mostly needs a few rows.
constexpr int64_t kTextLogitBytes = int64_t{16} << 20;
constexpr int64_t kSmallestChunk = 64;
}  // namespace

void Model::plan(Arena& arena, int64_t B, int64_t T, ModelUse use, Recompute recompute,
                 bool attention_statistics) {
  const bool training = use == ModelUse::training, generation = use == ModelUse::generation;
  require(!generation || causal(), "texts of causal attention");
  const int64_t longest = T;
  if (generation) T = std::min(longest, kMaxPrefillChunk);
  const Dtype A = dtype_, P = backend_.parameter_dtype();
  const int64_t N = checked_mul(B, T, "train.micro_batch * data.sequence_length");
  const int64_t C = config_.width, F = config_.mlp.hidden, W = qkv_width();
  const int64_t H = config_.heads, Q = H * config_.head_dim(), V = config_.vocab,
                O = config_.outputs();
  max_B_ = B;
  max_T_ = T;
  const int64_t logit_bytes = generation                    ? kTextLogitBytes
                              : backend_.memory().on_host() ? kHostLogitBytes
                                                            : kDeviceLogitBytes;
  chunk_ = std::min(N, std::max(kSmallestChunk, logit_bytes / (4 * O) / 64 * 64));

  if (A != P) arena.add("weights.compute", &compute_, A, {layout_.elements()});
  arena.add("batch.tokens", &tokens_, Dtype::i32, {N});
  arena.add("batch.targets", &targets_, Dtype::i32, {N});
  const auto windows = static_cast<int64_t>(mechanisms_.windows().size());
  arena.add("batch.first_key", &first_key_, Dtype::i32, {windows * N});
  if (!causal()) arena.add("batch.last_key", &last_key_, Dtype::i32, {windows * N});
  arena.add("batch.positions", &positions_, Dtype::i32, {B, T});
  if (draws_in(randomization(), use) && randomization().what == Randomized::positions) {
    arena.add("batch.random_positions", &random_positions_, Dtype::i32, {draws(), B, T});
  }
  recompute_ = recompute;
  plan_layers(arena, B, T, training);
  arena.add("activations.branch", &branch_, A, {N, C});
  arena.add("activations.final", &final_, A, {N, C});
  arena.add("activations.norm", &norm_, A, {N, C});
  arena.add("activations.stats", &stats_, P, {N, 2});
  arena.add("head.logits", &logits_, P, {chunk_, logits_stride()});
  arena.add("head.losses", &losses_, P, {N});
  arena.add("head.likeliest", &likeliest_, Dtype::i32, {N});
  if (generation) kv_cache_.plan(arena, config_, mechanisms_, B, longest, A);
  if (attention_statistics) {
    arena.add("activations.entropy", &entropy_, P, {B, H, T});
    arena.add("activations.support", &nonzero_keys_, P, {B, H, T});
  }
  if (training) {
    if (A != P) arena.add("head.dlogits", &dlogits_, A, {chunk_, logits_stride()});
    arena.add("gradients.stream", &dstream_, A, {N, C});
    arena.add("gradients.norm", &dnorm_, A, {N, C});
    arena.add("gradients.qkv", &dqkv_, A, {N, W});
    arena.add("gradients.attention", &dattention_, A, {N, Q});
    arena.add("gradients.activation", &dactivation_, A, {N, F});
  }
  mechanisms_.plan(arena, B, longest, use);
  WorkspaceShape scratch = {
      .B = B,
      .T = T,
      .H = H,
      .K = config_.kv_heads,
      .D = config_.head_dim(),
      .C = C,
      .incremental = generation,
      .past = longest - T,
      .backward = training,
      .F = F,
      .hidden = hidden_width(),
      .V = std::max(V, position_embedding_ ? position_embedding_->shape[0] : 0),
      .head_bias = head_bias_ ? O : 0,
      .mechanism_values = mechanisms_.largest_parameter(),
      .gates = layout_.gate_columns(),
      .bidirectional = !causal(),
      .attention_statistics = attention_statistics,
      .activations = A};
  scratch.attention = mechanisms_.forms();
  backend_.plan(arena, scratch);
}

void Model::plan_layers(Arena& arena, int64_t B, int64_t T, bool training) {
  const Dtype A = dtype_, P = backend_.parameter_dtype();
  const int64_t N = B * T, C = config_.width, F = config_.mlp.hidden, H = config_.heads;
  const bool block = training && recompute_ != Recompute::block;
  const bool mlp = training && recompute_ == Recompute::none;
  const int64_t branch = config_.norm_position == NormPosition::both ? C : 0;
  const struct {
    const char* name;
    Tensor LayerActivations::*tensor;
    Dtype dtype;
    int64_t rows, columns;  // 0 columns: the model has no such part
    bool kept;              // by every layer
  } parts[] = {{"residual", &LayerActivations::residual, A, N, C, training},
               {"norm1", &LayerActivations::norm1, A, N, C, block},
               {"stats1", &LayerActivations::stats1, P, N, 2, block},
               {"qkv", &LayerActivations::qkv, A, N, qkv_width(), block},
               {"attention", &LayerActivations::attention, A, N, H * config_.head_dim(), block},
               {"branch1", &LayerActivations::branch1, A, N, branch, block},
               {"branch_stats1", &LayerActivations::branch_stats1, P, N, branch ? 2 : 0, block},
               {"residual2", &LayerActivations::residual2, A, N, C, block},
               {"norm2", &LayerActivations::norm2, A, N, C, block},
               {"stats2", &LayerActivations::stats2, P, N, 2, block},
               {"hidden", &LayerActivations::hidden, A, N, hidden_width(), mlp},
               {"activation", &LayerActivations::activation, A, N, F, mlp},
               {"branch2", &LayerActivations::branch2, A, N, branch, block},
               {"branch_stats2", &LayerActivations::branch_stats2, P, N, branch ? 2 : 0, block}};
  const auto add = [&](LayerActivations& to, bool kept) {
    for (const auto& p : parts) {
      if (p.kept != kept || p.columns == 0) continue;
      arena.add(std::string("activations.") + p.name, &(to.*p.tensor), p.dtype,
                {p.rows, p.columns});
    }
    // Kept with the output of attention.
    if (block == kept) plan_saved(arena, to.saved, mechanisms_.normalizer(), B, H, T, P);
  };
  layers_.resize(static_cast<size_t>(config_.layers));
  for (LayerActivations& l : layers_) add(l, true);
  add(shared_, false);
}

LayerActivations Model::layer(int64_t l) const {
  LayerActivations x = shared_;
  const LayerActivations& kept = layers_[static_cast<size_t>(l)];
  for (const auto part :
       {&LayerActivations::residual, &LayerActivations::norm1, &LayerActivations::stats1,
        &LayerActivations::qkv, &LayerActivations::attention, &LayerActivations::branch1,
        &LayerActivations::branch_stats1, &LayerActivations::residual2, &LayerActivations::norm2,
        &LayerActivations::stats2, &LayerActivations::hidden, &LayerActivations::activation,
        &LayerActivations::branch2, &LayerActivations::branch_stats2}) {
    if (kept.*part) x.*part = kept.*part;
  }
  if (kept.attention) x.saved = kept.saved;
  return x;
}

int64_t Model::logits_stride() const { return logits_stride_of(config_.outputs()); }

}  // namespace bamtrain
