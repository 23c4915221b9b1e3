#include "model/model.h"

#include <algorithm>

#include "core/checked.h"
#include "core/element.h"
#include "model/sequence.h"

namespace bamtrain {

namespace {
// Bytes of fp32 logits that exist at a time: large enough for the products to run at full speed. On
// a GPU each chunk reads and writes the gradient of the head's weight, and takes that much time of
// a product of some thousand rows.
constexpr int64_t kHostLogitBytes = int64_t{64} << 20, kDeviceLogitBytes = int64_t{512} << 20;
constexpr int64_t kSmallestChunk = 64;
// Rows of logits begin at multiples of this many elements, whatever the vocabulary.
constexpr int64_t kLogitAlignment = 64;
}  // namespace

int64_t evaluation_batch(int64_t length) { return std::max<int64_t>(1, 8192 / length); }

Model::Model(const ModelConfig& config, int64_t sequence_length, Backend& backend,
             Dtype activations)
    : config_(config),
      backend_(backend),
      dtype_(activations),
      layout_(config, sequence_length),
      embedding_(layout_.find("model.embed_tokens.weight")),
      position_embedding_(layout_.find("model.embed_positions.weight")),
      final_norm_(layout_.find("model.norm.weight")),
      final_norm_bias_(layout_.find("model.norm.bias")),
      head_(config.tied ? embedding_ : layout_.find("lm_head.weight")),
      mechanisms_(config, sequence_length, layout_, backend) {
  for (int64_t l = 0; l < config.layers; ++l) blocks_.push_back(find_block(l));
}

BlockParameters Model::find_block(int64_t l) const {
  const auto find = [&](const char* name) { return layout_.find(layer_prefix(l) + name); };
  const bool two = gated();
  return {find("input_layernorm.weight"),
          find("input_layernorm.bias"),
          find("self_attn.q_proj.weight"),
          find("self_attn.q_proj.bias"),
          find("self_attn.o_proj.weight"),
          find("self_attn.o_proj.bias"),
          find("post_attention_layernorm.weight"),
          find("post_attention_layernorm.bias"),
          find(two ? "mlp.gate_proj.weight" : "mlp.up_proj.weight"),
          find(two ? "mlp.gate_proj.bias" : "mlp.up_proj.bias"),
          find("mlp.down_proj.weight"),
          find("mlp.down_proj.bias")};
}

void Model::plan(Arena& arena, int64_t B, int64_t T, ModelUse use, Recompute recompute) {
  const bool training = use == ModelUse::training;
  const Dtype A = dtype_, P = backend_.parameter_dtype();
  const int64_t N = checked_mul(B, T, "train.micro_batch * data.sequence_length");
  const int64_t C = config_.width, F = config_.mlp.hidden, W = qkv_width();
  const int64_t H = config_.heads, Q = H * config_.head_dim(), V = config_.vocab;
  max_B_ = B;
  max_T_ = T;
  const int64_t logit_bytes = backend_.memory().on_host() ? kHostLogitBytes : kDeviceLogitBytes;
  chunk_ = std::min(N, std::max(kSmallestChunk, logit_bytes / (4 * V) / 64 * 64));

  if (A != P) arena.add("weights.compute", &compute_, A, {layout_.elements()});
  arena.add("batch.tokens", &tokens_, Dtype::i32, {N});
  arena.add("batch.targets", &targets_, Dtype::i32, {N});
  arena.add("batch.first_key", &first_key_, Dtype::i32, {B, T});
  arena.add("batch.positions", &positions_, Dtype::i32, {B, T});
  recompute_ = recompute;
  plan_layers(arena, B, T, training);
  arena.add("activations.branch", &branch_, A, {N, C});
  arena.add("activations.final", &final_, A, {N, C});
  arena.add("activations.norm", &norm_, A, {N, C});
  arena.add("activations.stats", &stats_, P, {N, 2});
  arena.add("head.logits", &logits_, P, {chunk_, logits_stride()});
  arena.add("head.losses", &losses_, P, {N});
  if (training) {
    if (A != P) arena.add("head.dlogits", &dlogits_, A, {chunk_, logits_stride()});
    arena.add("gradients.stream", &dstream_, A, {N, C});
    arena.add("gradients.norm", &dnorm_, A, {N, C});
    arena.add("gradients.qkv", &dqkv_, A, {N, W});
    arena.add("gradients.attention", &dattention_, A, {N, Q});
    arena.add("gradients.activation", &dactivation_, A, {N, F});
  }
  mechanisms_.plan(arena, B, T, training);
  backend_.plan(arena, {.B = B,
                        .T = T,
                        .H = H,
                        .K = config_.kv_heads,
                        .D = config_.head_dim(),
                        .C = C,
                        .backward = training,
                        .F = F,
                        .hidden = hidden_width(),
                        .V = std::max(V, position_embedding_ ? position_embedding_->shape[0] : 0),
                        .mechanism_values = mechanisms_.largest_parameter(),
                        .gates = layout_.gate_columns(),
                        .prior = mechanisms_.family(),
                        .activations = A});
}

void Model::plan_layers(Arena& arena, int64_t B, int64_t T, bool training) {
  const Dtype A = dtype_, P = backend_.parameter_dtype();
  const int64_t N = B * T, C = config_.width, F = config_.mlp.hidden, H = config_.heads;
  const bool block = training && recompute_ != Recompute::block;
  const bool mlp = training && recompute_ == Recompute::none;
  const struct {
    const char* name;
    Tensor LayerActivations::*tensor;
    Dtype dtype;
    int64_t rows, columns;
    bool kept;  // by every layer
  } parts[] = {{"residual", &LayerActivations::residual, A, N, C, training},
               {"norm1", &LayerActivations::norm1, A, N, C, block},
               {"stats1", &LayerActivations::stats1, P, N, 2, block},
               {"qkv", &LayerActivations::qkv, A, N, qkv_width(), block},
               {"attention", &LayerActivations::attention, A, N, H * config_.head_dim(), block},
               {"lse", &LayerActivations::lse, P, B * H, T, block},
               {"residual2", &LayerActivations::residual2, A, N, C, block},
               {"norm2", &LayerActivations::norm2, A, N, C, block},
               {"stats2", &LayerActivations::stats2, P, N, 2, block},
               {"hidden", &LayerActivations::hidden, A, N, hidden_width(), mlp},
               {"activation", &LayerActivations::activation, A, N, F, mlp}};
  const auto add = [&](LayerActivations& to, bool kept) {
    for (const auto& p : parts) {
      if (p.kept != kept) continue;
      arena.add(std::string("activations.") + p.name, &(to.*p.tensor), p.dtype,
                {p.rows, p.columns});
    }
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
        &LayerActivations::qkv, &LayerActivations::attention, &LayerActivations::lse,
        &LayerActivations::residual2, &LayerActivations::norm2, &LayerActivations::stats2,
        &LayerActivations::hidden, &LayerActivations::activation}) {
    if (kept.*part) x.*part = kept.*part;
  }
  return x;
}

int64_t Model::logits_stride() const {
  return ceil_div(config_.vocab, kLogitAlignment) * kLogitAlignment;
}

void Model::set_masters(Tensor masters) {
  masters_ = masters;
  const auto N = static_cast<size_t>(max_B_ * max_T_);
  host_first_key_.resize(N);
  host_positions_.resize(N);
  host_losses_.resize(N * size_of(backend_.parameter_dtype()));
  // What products read of weights and gradients beside the gates belongs to no parameter: 0.
  if (const int64_t G = layout_.gate_columns(); G > 0) {
    const int64_t W = qkv_width(), C = config_.width;
    for (const BlockParameters& p : blocks_) {
      const Tensor bias = fused_view_of(masters_, p.qkv_bias, W, 1);
      if (bias) backend_.zero(bias.slice(0, W - G, G));
      const int64_t used = mechanisms_.gates();
      if (used < G) {
        backend_.zero(fused_view_of(masters_, p.qkv, W, C).slice(0, W - G + used, G - used));
      }
    }
    if (dqkv_) backend_.zero(dqkv_);
  }
}

void Model::refresh() {
  if (compute_) backend_.convert(compute_, masters_);
  refresh_mechanisms();
}

void Model::refresh_mechanisms() { mechanisms_.refresh(masters_); }

/// The part of a planned tensor that the batch at hand uses: its first N rows.
Tensor Model::rows(const Tensor& t) const { return t.slice(0, 0, B_ * T_); }

void Model::load_batch(const int32_t* tokens, const int32_t* targets, int64_t B, int64_t T,
                       std::optional<int64_t> document_start) {
  require(B <= max_B_ && T <= max_T_, "a batch within the planned size");
  if (!config_.attention.document_mask) document_start.reset();
  B_ = B;
  T_ = T;
  for (int64_t b = 0; b < B; ++b) {
    lay_out_sequence(tokens + b * T, T, document_start, mechanisms_.window(),
                     host_first_key_.data() + b * T, host_positions_.data() + b * T);
  }
  const auto batch = [&](const Tensor& t) { return Tensor(t.data, t.dtype, {B * T}); };
  backend_.upload(batch(tokens_), tokens);
  if (targets) backend_.upload(batch(targets_), targets);
  backend_.upload(batch(first_key_), host_first_key_.data());
  backend_.upload(batch(positions_), host_positions_.data());
}

Tensor Model::lse_of(const LayerActivations& x) const {
  return Tensor(x.lse.data, x.lse.dtype, {B_, config_.heads, T_});
}

Tensor Model::positions() const { return Tensor(positions_.data, Dtype::i32, {B_, T_}); }

Attention Model::attention_of(int64_t l) {
  const int64_t H = config_.heads, K = config_.kv_heads;
  const Tensor qkv = rows(layer(l).qkv);
  Attention a;
  a.q = heads_of(qkv, 0, H);
  a.k = heads_of(qkv, H, K);
  a.v = heads_of(qkv, H + K, K);
  a.first_key = Tensor(first_key_.data, Dtype::i32, {B_, T_});
  a.positions = positions();
  mechanisms_.attach(l, a, gates_of(qkv));
  return a;
}

Tensor Model::heads_of(const Tensor& fused, int64_t begin, int64_t count) const {
  const int64_t D = config_.head_dim(), W = fused.shape[1];
  Tensor heads(fused.slice(1, begin * D, count * D).data, fused.dtype, {B_, T_, count, D});
  heads.stride = {T_ * W, W, D, 1};
  return heads;
}

Tensor Model::gates_of(const Tensor& fused) const {
  const int64_t G = layout_.gate_columns(), W = fused.shape[1];
  Tensor gates(fused.slice(1, W - G, G).data, fused.dtype, {B_, T_, G});
  gates.stride = {T_ * W, W, 1};
  return gates;
}

// --- forward ------------------------------------------------------------------------------------

void Model::embedding_forward() {
  Tensor table = view_of(masters_, position_embedding_);
  if (mechanisms_.sinusoidal()) table = mechanisms_.position_table();
  if (table && T_ > table.shape[0]) {
    throw Error(ExitCode::config, "model.attention.prior",
                "at most " + std::to_string(table.shape[0]) + " positions, the learned table",
                std::to_string(T_), "evaluate at shorter lengths, or train with a longer table");
  }
  backend_.embedding_forward(rows(layer(0).residual), rows(tokens_), view_of(weights(), embedding_),
                             positions().reshaped({B_ * T_}), table);
}

void Model::forward_block(int64_t l) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const NormConfig& n = config_.norm;
  // The stream enters as the embedding, or as the sum of the block before and its mlp.
  const Tensor residual = l == 0 ? rows(x.residual) : rows(layer(l - 1).residual2);
  backend_.norm_forward(rows(x.residual), rows(x.norm1), rows(x.stats1), residual,
                        l == 0 ? Tensor() : rows(branch_), view_of(masters_, p.norm1),
                        view_of(masters_, p.norm1_bias), n.kind, n.eps);
  attend(l);
  expand(l);
  backend_.linear_forward(rows(branch_), rows(x.activation), view_of(weights(), p.down),
                          view_of(masters_, p.down_bias));
}

/// From norm1 to norm2: attention, and the stream behind it.
void Model::attend(int64_t l) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, W = qkv_width();
  const auto vector = [&](const Parameter* v) { return view_of(masters_, v); };
  backend_.linear_forward(rows(x.qkv), rows(x.norm1), fused_view_of(weights(), p.qkv, W, C),
                          fused_view_of(masters_, p.qkv_bias, W, 1));
  const Attention a = attention_of(l);
  if (mechanisms_.rotary()) {
    backend_.rotate(a.q, positions(), mechanisms_.cosine(), mechanisms_.sine(), false);
    backend_.rotate(a.k, positions(), mechanisms_.cosine(), mechanisms_.sine(), false);
  }
  const Tensor out = rows(x.attention).reshaped({B_, T_, config_.heads, config_.head_dim()});
  backend_.attention_forward(out, lse_of(x), a);
  backend_.linear_forward(rows(branch_), rows(x.attention), view_of(weights(), p.out),
                          vector(p.out_bias));
  backend_.norm_forward(rows(x.residual2), rows(x.norm2), rows(x.stats2), rows(x.residual),
                        rows(branch_), vector(p.norm2), vector(p.norm2_bias), config_.norm.kind,
                        config_.norm.eps);
}

/// From norm2 to the mlp's activation.
void Model::expand(int64_t l) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, F = hidden_width();
  backend_.linear_forward(rows(x.hidden), rows(x.norm2), fused_view_of(weights(), p.hidden, F, C),
                          fused_view_of(masters_, p.hidden_bias, F, 1));
  backend_.activation_forward(rows(x.activation), rows(x.hidden), config_.mlp.kind);
}

void Model::forward() {
  embedding_forward();
  for (int64_t l = 0; l < config_.layers; ++l) forward_block(l);
  backend_.norm_forward(rows(final_), rows(norm_), rows(stats_),
                        rows(layer(config_.layers - 1).residual2), rows(branch_),
                        view_of(masters_, final_norm_), view_of(masters_, final_norm_bias_),
                        config_.norm.kind, config_.norm.eps);
}

/// Forward and backward at once, so that logits exist for one chunk of rows only. The adjoint of
/// the final norm's output lands in dnorm_.
void Model::head(double scale, const Tensor* gradients) {
  const int64_t N = B_ * T_;
  const Tensor w = view_of(weights(), head_);
  for (int64_t begin = 0; begin < N; begin += chunk_) {
    const int64_t R = std::min(chunk_, N - begin);
    const auto of_chunk = [&](const Tensor& t) {
      return t.slice(0, 0, R).slice(1, 0, config_.vocab);
    };
    const Tensor x = norm_.slice(0, begin, R), z = of_chunk(logits_);
    const Tensor dz = !gradients ? Tensor() : dlogits_ ? of_chunk(dlogits_) : z;
    backend_.linear_forward(z, x, w, {});
    backend_.cross_entropy(losses_.slice(0, begin, R), dz, z, targets_.slice(0, begin, R), scale);
    if (!gradients) continue;
    backend_.linear_backward_input(dnorm_.slice(0, begin, R), dz, w);
    backend_.linear_backward_weight(view_of(*gradients, head_), {}, dz, x);
  }
}

// --- backward -----------------------------------------------------------------------------------

/// Computes again, to the bit, what the layer did not keep of its forward pass. The last layer's is
/// still there.
void Model::recompute_block(int64_t l) {
  if (recompute_ == Recompute::none || l == config_.layers - 1) return;
  if (recompute_ == Recompute::block) {
    const LayerActivations x = layer(l);
    const BlockParameters& p = block(l);
    backend_.norm_forward(rows(x.residual), rows(x.norm1), rows(x.stats1), rows(x.residual), {},
                          view_of(masters_, p.norm1), view_of(masters_, p.norm1_bias),
                          config_.norm.kind, config_.norm.eps);
    attend(l);
  }
  expand(l);
}

/// Reads the layer's activations; dstream_ holds the adjoint of the block's output on entry and of
/// its input on exit.
void Model::backward_block(int64_t l, const Tensor& gradients) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, W = qkv_width(), F = hidden_width();
  const auto grad = [&](const Parameter* g) { return view_of(gradients, g); };
  const Tensor dstream = rows(dstream_), dnorm = rows(dnorm_), dqkv = rows(dqkv_);

  // The adjoint of `hidden` overwrites it: nothing reads it again.
  const Tensor dhidden = rows(x.hidden);
  backend_.linear_backward_weight(grad(p.down), grad(p.down_bias), dstream, rows(x.activation));
  backend_.linear_backward_input(rows(dactivation_), dstream, view_of(weights(), p.down));
  backend_.activation_backward(dhidden, rows(dactivation_), rows(x.hidden), config_.mlp.kind);
  backend_.linear_backward_weight(fused_view_of(gradients, p.hidden, F, C),
                                  fused_view_of(gradients, p.hidden_bias, F, 1), dhidden,
                                  rows(x.norm2));
  backend_.linear_backward_input(dnorm, dhidden, fused_view_of(weights(), p.hidden, F, C));
  backend_.norm_backward(dstream, grad(p.norm2), grad(p.norm2_bias), dnorm, rows(x.residual2),
                         rows(x.stats2), view_of(masters_, p.norm2), config_.norm.kind);

  backend_.linear_backward_weight(grad(p.out), grad(p.out_bias), dstream, rows(x.attention));
  backend_.linear_backward_input(rows(dattention_), dstream, view_of(weights(), p.out));
  const int64_t H = config_.heads, K = config_.kv_heads, D = config_.head_dim();
  const Attention a = attention_of(l);
  AttentionGradients g;
  g.dq = heads_of(dqkv, 0, H);
  g.dk = heads_of(dqkv, H, K);
  g.dv = heads_of(dqkv, H + K, K);
  mechanisms_.attach(g, B_, T_);
  backend_.attention_backward(g, rows(dattention_).reshaped({B_, T_, H, D}),
                              rows(x.attention).reshaped({B_, T_, H, D}), lse_of(x), a);
  mechanisms_.backward(l, g, a, gates_of(rows(x.qkv)), gates_of(dqkv), gradients);
  if (mechanisms_.rotary()) {
    backend_.rotate(g.dq, positions(), mechanisms_.cosine(), mechanisms_.sine(), true);
    backend_.rotate(g.dk, positions(), mechanisms_.cosine(), mechanisms_.sine(), true);
  }
  backend_.linear_backward_weight(fused_view_of(gradients, p.qkv, W, C),
                                  fused_view_of(gradients, p.qkv_bias, W, 1), dqkv, rows(x.norm1));
  // The places of gates in the bias belong to no parameter, and not to the gradients' norm.
  if (const int64_t G = layout_.gate_columns(); G > 0 && p.qkv_bias) {
    backend_.zero(fused_view_of(gradients, p.qkv_bias, W, 1).slice(0, W - G, G));
  }
  backend_.linear_backward_input(dnorm, dqkv, fused_view_of(weights(), p.qkv, W, C));
  backend_.norm_backward(dstream, grad(p.norm1), grad(p.norm1_bias), dnorm, rows(x.residual),
                         rows(x.stats1), view_of(masters_, p.norm1), config_.norm.kind);
}

void Model::embedding_backward(const Tensor& gradients) {
  backend_.embedding_backward(view_of(gradients, embedding_),
                              view_of(gradients, position_embedding_), rows(dstream_),
                              rows(tokens_), positions().reshaped({B_ * T_}));
}

void Model::forward_backward(const int32_t* tokens, const int32_t* targets,
                             std::optional<int64_t> document_start, double scale, Tensor gradients,
                             Tensor loss) {
  load_batch(tokens, targets, max_B_, max_T_, document_start);
  // The same operations on the same memory for every micro-batch of a lane's buffer.
  const auto work = [&] {
    forward();
    head(scale, &gradients);
    backend_.sum(loss, rows(losses_));
    backend_.zero(rows(dstream_));
    backend_.norm_backward(rows(dstream_), view_of(gradients, final_norm_),
                           view_of(gradients, final_norm_bias_), rows(dnorm_), rows(final_),
                           rows(stats_), view_of(masters_, final_norm_), config_.norm.kind);
    for (int64_t l = config_.layers - 1; l >= 0; --l) {
      recompute_block(l);
      backward_block(l, gradients);
    }
    embedding_backward(gradients);
  };
  backend_.repeat(reinterpret_cast<intptr_t>(gradients.data), std::ref(work));  // takes no memory
}

// --- evaluation ---------------------------------------------------------------------------------

void Model::evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                     std::optional<int64_t> document_start, double* losses) {
  load_batch(tokens, targets, b, t, document_start);
  forward();
  head(1, nullptr);
  backend_.download(host_losses_.data(), rows(losses_));
  const Tensor host(host_losses_.data(), losses_.dtype, {b * t});
  for (int64_t n = 0; n < b * t; ++n) losses[n] = get(host, n);
}

void Model::logits(const int32_t* tokens, int64_t b, int64_t t,
                   std::optional<int64_t> document_start, Tensor out) {
  load_batch(tokens, nullptr, b, t, document_start);
  forward();
  backend_.linear_forward(out, rows(norm_), view_of(weights(), head_), {});
}

}  // namespace bamtrain
