// A block of the decoder: attention and the mlp, each a branch that is added to the stream, and the
// norms around them.

#include "model/model.h"

namespace bamtrain {

NormParameters Model::find_norm(const std::string& name) const {
  return {layout_.find(name + ".weight"), layout_.find(name + ".bias")};
}

BlockParameters Model::find_block(int64_t l) const {
  const auto find = [&](const char* name) { return layout_.find(layer_prefix(l) + name); };
  const auto norm = [&](const char* name) { return find_norm(layer_prefix(l) + name); };
  const bool gated = is_gated(config_.mlp.kind);
  BlockParameters p = {norm("input_layernorm"),
                       find("self_attn.q_proj.weight"),
                       find("self_attn.q_proj.bias"),
                       {find("self_attn.o_proj.weight"), find("self_attn.o_proj.bias"), {}},
                       norm("post_attention_layernorm"),
                       find(gated ? "mlp.gate_proj.weight" : "mlp.up_proj.weight"),
                       find(gated ? "mlp.gate_proj.bias" : "mlp.up_proj.bias"),
                       {find("mlp.down_proj.weight"), find("mlp.down_proj.bias"), {}}};
  if (post() && l > 0) p.norm1 = find_norm(layer_prefix(l - 1) + "post_feedforward_layernorm");
  if (config_.norm_position == NormPosition::both) {
    p.out.norm = p.norm2;
    p.norm2 = norm("pre_feedforward_layernorm");
    p.down.norm = norm("post_feedforward_layernorm");
  }
  return p;
}

/// Attention's input; post-norm, the first block reads the embedding itself.
const Tensor& Model::attention_input(const LayerActivations& x, int64_t l) const {
  return block(l).norm1.weight ? x.norm1 : x.residual;
}

/// The stream after attention, before the mlp's branch is added.
Tensor Model::stream_behind(int64_t l) const {
  const LayerActivations x = layer(l);
  return stream(x.residual2, x.norm2);
}

// --- norms --------------------------------------------------------------------------------------

/// sum = residual + branch, which may be empty; y is its norm.
void Model::norm_forward(const Tensor& sum, const Tensor& y, const Tensor& stats,
                         const Tensor& residual, const Tensor& branch, const NormParameters& p) {
  backend_.norm_forward(rows(sum), rows(y), rows(stats), rows(residual),
                        branch ? rows(branch) : Tensor(), view_of(master_weights_, p.weight),
                        view_of(master_weights_, p.bias), config_.norm.kind, config_.norm.eps);
}

/// dsum += the adjoint of the norm at dy.
void Model::norm_backward(const Tensor& dsum, const Tensor& dy, const Tensor& sum,
                          const Tensor& stats, const NormParameters& p, const Tensor& gradients) {
  backend_.norm_backward(rows(dsum), view_of(gradients, p.weight), view_of(gradients, p.bias),
                         rows(dy), rows(sum), rows(stats), view_of(master_weights_, p.weight),
                         config_.norm.kind);
}

/// On entry, dstream_ is the adjoint of the stream after the sum, and dnorm_ that of the norm
/// through the branch that reads it. On exit, dstream_ is the adjoint of the sum.
void Model::stream_backward(const Tensor& sum, const Tensor& stats, const NormParameters& p,
                            const Tensor& gradients) {
  if (!p.weight) return backend_.add(rows(dstream_), rows(dnorm_));  // the branch reads the stream
  if (post()) {  // the stream continues from the norm
    backend_.add(rows(dnorm_), rows(dstream_));
    backend_.zero(rows(dstream_));
  }
  norm_backward(dstream_, dnorm_, sum, stats, p, gradients);
}

/// branch_ = the product, or its norm.
void Model::branch_forward(const BranchEnd& p, const Tensor& in, const Tensor& product,
                           const Tensor& stats) {
  const Tensor& out = p.norm.weight ? product : branch_;
  backend_.linear_forward(rows(out), rows(in), view_of(weights(), p.weight),
                          view_of(master_weights_, p.bias));
  if (p.norm.weight) norm_forward(product, branch_, stats, product, {}, p.norm);
}

/// dstream_ is the adjoint of the branch. Overwrites dnorm_.
void Model::branch_backward(const Tensor& din, const BranchEnd& p, const Tensor& in,
                            const Tensor& product, const Tensor& stats, const Tensor& gradients) {
  if (p.norm.weight) {
    backend_.zero(rows(dnorm_));
    norm_backward(dnorm_, dstream_, product, stats, p.norm, gradients);
  }
  const Tensor dout = rows(p.norm.weight ? dnorm_ : dstream_);
  backend_.linear_backward_weight(view_of(gradients, p.weight), view_of(gradients, p.bias), dout,
                                  rows(in));
  backend_.linear_backward_input(rows(din), dout, view_of(weights(), p.weight));
}

// --- forward ------------------------------------------------------------------------------------

void Model::forward_block(int64_t l, double* attention_statistics) {
  const LayerActivations x = layer(l);
  const NormParameters& norm1 = block(l).norm1;
  // The stream at entry is the embedding, or the previous block's stream plus its mlp branch.
  if (l > 0) {
    norm_forward(x.residual, x.norm1, x.stats1, stream_behind(l - 1), branch_, norm1);
  } else if (norm1.weight) {
    norm_forward(x.residual, x.norm1, x.stats1, x.residual, {}, norm1);
  }
  if (observer_) observer_->stream(l, rows(x.residual));
  attend(l, attention_statistics);
  expand(l);
  contract(l);
}

void Model::rotate(int64_t l, const Tensor& q, const Tensor& k, bool inverse) {
  const Rotation r = mechanisms_.rotation(l);
  if (!r.cosine) return;
  const Tensor positions = r.randomized && drawn_ ? random_positions(l) : this->positions();
  backend_.rotate(q, positions, r.cosine, r.sine, inverse);
  backend_.rotate(k, positions, r.cosine, r.sine, inverse);
}

/// Writes the batch's keys and values to the KV cache.
void Model::append_to_kv_cache(int64_t l) {
  const int64_t H = config_.heads, K = config_.kv_heads;
  const auto put = [&](const Tensor& all, int64_t first_head) {
    backend_.copy(all.slice(1, all.shape[1] - T_, T_), heads_of(qkv(l), first_head, K));
  };
  put(kv_cache_.keys(l, B_, T_), H);
  put(kv_cache_.values(l, B_, T_), H + K);
}

/// From norm1 to norm2: attention, and the stream after it.
void Model::attend(int64_t l, double* attention_statistics) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, W = qkv_width();
  backend_.linear_forward(qkv(l), rows(attention_input(x, l)),
                          fused_view_of(weights(), p.qkv, W, C),
                          fused_view_of(master_weights_, p.qkv_bias, W, 1));
  const int64_t H = config_.heads, K = config_.kv_heads;
  rotate(l, heads_of(qkv(l), 0, H), heads_of(qkv(l), H, K), false);
  if (kv_cache_) append_to_kv_cache(l);
  const Attention a = attention_of(l);
  const Tensor out = rows(x.attention).reshaped({B_, T_, config_.heads, config_.head_dim()});
  backend_.attention_forward(out, saved_of(x), a);
  if (observer_) observer_->attention(l, a, gates_of(qkv(l)), out);
  if (attention_statistics) sum_attention_statistics(l, saved_of(x), a, attention_statistics);
  branch_forward(p.out, x.attention, x.branch1, x.branch_stats1);
  norm_forward(x.residual2, x.norm2, x.stats2, stream(x.residual, attention_input(x, l)), branch_,
               p.norm2);
}

/// From norm2 to the mlp's activation.
void Model::expand(int64_t l) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, F = hidden_width();
  backend_.linear_forward(rows(x.hidden), rows(x.norm2), fused_view_of(weights(), p.hidden, F, C),
                          fused_view_of(master_weights_, p.hidden_bias, F, 1));
  backend_.activation_forward(rows(x.activation), rows(x.hidden), config_.mlp.kind);
}

/// From the mlp's activation to its branch.
void Model::contract(int64_t l) {
  const LayerActivations x = layer(l);
  branch_forward(block(l).down, x.activation, x.branch2, x.branch_stats2);
}

// --- backward -----------------------------------------------------------------------------------

/// Recomputes what the layer did not keep of its forward pass, bitwise identical. The last layer's
/// activations are still there.
void Model::recompute_block(int64_t l) {
  if (recompute_ == Recompute::none || l == config_.layers - 1) return;
  if (recompute_ == Recompute::mlp) return expand(l);
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  if (p.norm1.weight) norm_forward(x.residual, x.norm1, x.stats1, x.residual, {}, p.norm1);
  attend(l);
  expand(l);
  if (p.down.norm.weight) contract(l);  // the norm after the product reads it
}

/// Reads the layer's activations; dstream_ holds the adjoint of the block's output on entry and of
/// its input on exit.
void Model::backward_block(int64_t l, const Tensor& gradients) {
  const LayerActivations x = layer(l);
  const BlockParameters& p = block(l);
  const int64_t C = config_.width, W = qkv_width(), F = hidden_width();
  const Tensor dnorm = rows(dnorm_), dqkv = rows(dqkv_);

  branch_backward(dactivation_, p.down, x.activation, x.branch2, x.branch_stats2, gradients);
  // The adjoint of `hidden` overwrites it, since nothing reads it again.
  const Tensor dhidden = rows(x.hidden);
  backend_.activation_backward(dhidden, rows(dactivation_), rows(x.hidden), config_.mlp.kind);
  backend_.linear_backward_weight(fused_view_of(gradients, p.hidden, F, C),
                                  fused_view_of(gradients, p.hidden_bias, F, 1), dhidden,
                                  rows(x.norm2));
  backend_.linear_backward_input(dnorm, dhidden, fused_view_of(weights(), p.hidden, F, C));
  stream_backward(x.residual2, x.stats2, p.norm2, gradients);

  branch_backward(dattention_, p.out, x.attention, x.branch1, x.branch_stats1, gradients);
  const int64_t H = config_.heads, K = config_.kv_heads, D = config_.head_dim();
  const Attention a = attention_of(l);
  AttentionGradients g;
  g.dq = heads_of(dqkv, 0, H);
  g.dk = heads_of(dqkv, H, K);
  g.dv = heads_of(dqkv, H + K, K);
  mechanisms_.attach(l, g, B_, T_);
  backend_.attention_backward(g, rows(dattention_).reshaped({B_, T_, H, D}),
                              rows(x.attention).reshaped({B_, T_, H, D}), saved_of(x), a);
  mechanisms_.backward(l, g, a, gates_of(qkv(l)), positions(), gates_of(dqkv), gradients);
  rotate(l, g.dq, g.dk, true);
  backend_.linear_backward_weight(fused_view_of(gradients, p.qkv, W, C),
                                  fused_view_of(gradients, p.qkv_bias, W, 1), dqkv,
                                  rows(attention_input(x, l)));
  clear_beside_gates(l, gradients);
  backend_.linear_backward_input(dnorm, dqkv, fused_view_of(weights(), p.qkv, W, C));
  stream_backward(x.residual, x.stats1, p.norm1, gradients);
  if (observer_) observer_->stream_gradient(l, rows(dstream_));
}

}  // namespace bamtrain
