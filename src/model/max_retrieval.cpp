#include "model/max_retrieval.h"

#include <algorithm>
#include <string>

#include "core/checked.h"
#include "core/element.h"
#include "core/retrieval_input.h"
#include "model/projection_views.h"

namespace bamtrain {

MaxRetrieval::MaxRetrieval(const ModelConfig& config, int64_t training_length, Backend& backend,
                           Dtype activations)
    : config_(config),
      backend_(backend),
      layout_(config, training_length),
      items_(find("model.items.mlp")),
      query_(find("model.query.mlp")),
      answer_(find("model.answer")),
      q_(layout_.find(layer_prefix(0) + "self_attn.q_proj.weight")),
      q_bias_(layout_.find(layer_prefix(0) + "self_attn.q_proj.bias")),
      kv_(layout_.find(layer_prefix(0) + "self_attn.k_proj.weight")),
      kv_bias_(layout_.find(layer_prefix(0) + "self_attn.k_proj.bias")),
      mechanisms_(config, training_length, layout_, backend) {
  const PriorConfig& prior = config.attention.prior;
  require(prior.names() == "nope" && !is_gated(config.mlp.kind) &&
              traits_of(mechanisms_.normalizer()).own_key,
          "a set of items, and a last one whose own row sees it");
  if (activations == Dtype::bf16) {
    throw Error(ExitCode::config, "train.precision",
                "fp32 with model.kind max_retrieval, whose priorities have 24 bits",
                "bf16, which keeps 8 of them", "choose fp32");
  }
}

SmallNetwork MaxRetrieval::find(const std::string& name) const {
  const auto part = [&](const char* of) { return layout_.find(name + of); };
  return {part(".hidden.weight"),
          part(".hidden.bias"),
          part(".output.weight"),
          part(".output.bias"),
          Tensor(),
          Tensor()};
}

void MaxRetrieval::plan(Arena& arena, int64_t B, int64_t T, ModelUse use, Recompute recompute,
                        bool attention_statistics) {
  require(use != ModelUse::generation && recompute == Recompute::none && !attention_statistics,
          "a plan of training or evaluation");
  const bool training = use == ModelUse::training;
  const Dtype P = backend_.parameter_dtype(), A = P;
  const int64_t N = checked_mul(B, T, "train.micro_batch * data.sequence_length");
  const int64_t C = config_.width, F = config_.mlp.hidden, O = config_.outputs();
  max_B_ = B;
  max_T_ = T;
  arena.add("batch.targets", &targets_, Dtype::i32, {N});
  arena.add("batch.first_key", &first_key_, Dtype::i32, {N});
  arena.add("batch.items", &item_features_, A, {N, kFeatureColumns});
  arena.add("batch.query", &query_features_, A, {N, kFeatureColumns});
  for (SmallNetwork* f : {&items_, &query_, &answer_}) {
    arena.add("activations.hidden", &f->before, A, {N, F});
    arena.add("activations.activation", &f->after, A, {N, F});
  }
  arena.add("activations.item", &item_, A, {N, C});
  arena.add("activations.query", &asked_, A, {N, C});
  arena.add("activations.q", &q_gates_, A, {N, query_width()});
  arena.add("activations.kv", &k_v_, A, {N, 2 * C});
  arena.add("activations.attention", &attention_, A, {N, C});
  plan_saved(arena, saved_, mechanisms_.normalizer(), B, 1, T, P);
  arena.add("head.logits", &logits_, P, {N, logits_stride_of(O)});
  arena.add("head.losses", &losses_, P, {N});
  arena.add("head.likeliest", &likeliest_, Dtype::i32, {N});
  if (training) {
    arena.add("gradients.stream", &dstream_, A, {N, C});
    arena.add("gradients.activation", &dactivation_, A, {N, F});
    arena.add("gradients.q", &dq_gates_, A, {N, query_width()});
    arena.add("gradients.kv", &dk_v_, A, {N, 2 * C});
  }
  mechanisms_.plan(arena, B, T, use);
  WorkspaceShape scratch = {.B = B,
                            .T = T,
                            .H = 1,
                            .K = 1,
                            .D = C,
                            .C = C,
                            .backward = training,
                            .F = F,
                            .hidden = F,
                            .V = 1,
                            .head_bias = O,
                            .mechanism_values = mechanisms_.largest_parameter(),
                            .gates = layout_.gate_columns(),
                            .activations = A};
  scratch.attention = mechanisms_.forms();
  backend_.plan(arena, scratch);
}

void MaxRetrieval::set_master_weights(Tensor master_weights) {
  master_weights_ = master_weights;
  const auto N = static_cast<size_t>(max_B_ * max_T_);
  host_items_.resize(static_cast<size_t>(item_features_.bytes()));
  host_query_.resize(host_items_.size());
  host_first_key_.resize(N);
  host_losses_.resize(static_cast<size_t>(losses_.bytes()));
  clear_beside_gates(master_weights_);
  if (dq_gates_ && layout_.gate_columns() > 0) backend_.zero(dq_gates_);
}

/// Zeroes the weights of the q product that belong to no gate of the scale, and the biases of all
/// gate columns. Products read and write them, but they belong to no parameter and must not count
/// in the gradient norm.
void MaxRetrieval::clear_beside_gates(const Tensor& flat) {
  const int64_t G = layout_.gate_columns(), used = mechanisms_.gates(0), W = query_width();
  if (used < G) {
    backend_.zero(fused_view_of(flat, q_, W, config_.width).slice(0, W - G + used, G - used));
  }
  if (G > 0) backend_.zero(fused_view_of(flat, q_bias_, W, 1).slice(0, W - G, G));
}

void MaxRetrieval::load_batch(const int32_t* tokens, const int32_t* targets, int64_t B, int64_t T) {
  require(B <= max_B_ && T <= max_T_, "a batch within the planned size");
  check_length(T);
  B_ = B;
  T_ = T;
  const Tensor items(host_items_.data(), item_features_.dtype, {B * T, kFeatureColumns});
  const Tensor query(host_query_.data(), item_features_.dtype, {B * T, kFeatureColumns});
  std::fill_n(host_items_.begin(), items.bytes(), char{0});
  std::fill_n(host_query_.begin(), query.bytes(), char{0});
  for (int64_t n = 0; n < B * T; ++n) {
    const auto item = RetrievalInput::of(tokens[n]);
    const auto asked = RetrievalInput::of(tokens[n / T * T]);
    put(query, n * kFeatureColumns, asked.value());
    const bool first = n % T == 0;
    host_first_key_[static_cast<size_t>(n)] = first ? 0 : 1;
    if (first) continue;  // no row that counts sees it
    require(item.of_class < RetrievalInput::kClasses, "items behind the query");
    put(items, n * kFeatureColumns, item.value());
    put(items, n * kFeatureColumns + 1 + item.of_class, 1);
  }
  const auto batch = [&](const Tensor& t) { return Tensor(t.data, t.dtype, {B * T}); };
  backend_.upload(rows(item_features_), items.data);
  backend_.upload(rows(query_features_), query.data);
  backend_.upload(batch(first_key_), host_first_key_.data());
  if (targets) backend_.upload(batch(targets_), targets);
}

Tensor MaxRetrieval::head_of(const Tensor& product, int64_t begin) const {
  return heads_of(product, B_, begin, 1, config_.width);
}

Tensor MaxRetrieval::gates_of(const Tensor& product) const {
  return bamtrain::gates_of(product, B_, layout_.gate_columns());
}

AttentionSaved MaxRetrieval::saved() const { return saved_of(saved_, B_, 1, T_); }

Attention MaxRetrieval::attention() {
  const Tensor q = rows(q_gates_), kv = rows(k_v_);
  Attention a;
  a.q = head_of(q, 0);
  a.k = head_of(kv, 0);
  a.v = head_of(kv, config_.width);
  a.first_key = Tensor(first_key_.data, Dtype::i32, {B_, T_});
  mechanisms_.attach(0, a, gates_of(q), {});
  return a;
}

Tensor MaxRetrieval::answers() const { return rows(logits_).slice(1, 0, config_.outputs()); }

// --- the small networks -------------------------------------------------------------------------

void MaxRetrieval::run(const SmallNetwork& f, const Tensor& out, const Tensor& in) {
  backend_.linear_forward(rows(f.before), in, view_of(master_weights_, f.hidden),
                          view_of(master_weights_, f.hidden_bias));
  backend_.activation_forward(rows(f.after), rows(f.before), config_.mlp.kind);
  backend_.linear_forward(out, rows(f.after), view_of(master_weights_, f.output),
                          view_of(master_weights_, f.output_bias));
}

/// Reads f.before and f.after of the forward pass.
void MaxRetrieval::run_backward(const SmallNetwork& f, const Tensor& din, const Tensor& dout,
                                const Tensor& in, const Tensor& gradients) {
  const Tensor dbefore = rows(f.before);  // in place: nothing reads f.before again
  backend_.linear_backward_weight(view_of(gradients, f.output), view_of(gradients, f.output_bias),
                                  dout, rows(f.after));
  backend_.linear_backward_input(rows(dactivation_), dout, view_of(master_weights_, f.output));
  backend_.activation_backward(dbefore, rows(dactivation_), rows(f.before), config_.mlp.kind);
  backend_.linear_backward_weight(view_of(gradients, f.hidden), view_of(gradients, f.hidden_bias),
                                  dbefore, in);
  if (din) backend_.linear_backward_input(din, dbefore, view_of(master_weights_, f.hidden));
}

// --- forward ------------------------------------------------------------------------------------

void MaxRetrieval::forward() {
  const int64_t C = config_.width, W = query_width();
  run(items_, rows(item_), rows(item_features_));
  run(query_, rows(asked_), rows(query_features_));
  backend_.linear_forward(rows(q_gates_), rows(asked_), fused_view_of(master_weights_, q_, W, C),
                          fused_view_of(master_weights_, q_bias_, W, 1));
  backend_.linear_forward(rows(k_v_), rows(item_), fused_view_of(master_weights_, kv_, 2 * C, C),
                          fused_view_of(master_weights_, kv_bias_, 2 * C, 1));
  backend_.attention_forward(head_of(rows(attention_), 0), saved(), attention());
  run(answer_, answers(), rows(attention_));
}

// --- backward -----------------------------------------------------------------------------------

/// Reads the activations of forward(), and the adjoint of the logits from the logits' memory.
void MaxRetrieval::backward(const Tensor& gradients) {
  const int64_t C = config_.width, W = query_width();
  const Tensor dstream = rows(dstream_), dq = rows(dq_gates_), dkv = rows(dk_v_);
  run_backward(answer_, dstream, answers(), rows(attention_), gradients);

  const Attention a = attention();
  AttentionGradients g;
  g.dq = head_of(dq, 0);
  g.dk = head_of(dkv, 0);
  g.dv = head_of(dkv, C);
  mechanisms_.attach(0, g, B_, T_);
  backend_.attention_backward(g, head_of(dstream, 0), head_of(rows(attention_), 0), saved(), a);
  mechanisms_.backward(0, g, a, gates_of(rows(q_gates_)), {}, gates_of(dq), gradients);

  backend_.linear_backward_weight(fused_view_of(gradients, kv_, 2 * C, C),
                                  fused_view_of(gradients, kv_bias_, 2 * C, 1), dkv, rows(item_));
  backend_.linear_backward_input(dstream, dkv, fused_view_of(master_weights_, kv_, 2 * C, C));
  run_backward(items_, {}, dstream, rows(item_features_), gradients);

  backend_.linear_backward_weight(fused_view_of(gradients, q_, W, C),
                                  fused_view_of(gradients, q_bias_, W, 1), dq, rows(asked_));
  clear_beside_gates(gradients);
  backend_.linear_backward_input(dstream, dq, fused_view_of(master_weights_, q_, W, C));
  run_backward(query_, {}, dstream, rows(query_features_), gradients);
}

void MaxRetrieval::load(const int32_t* tokens, const int32_t* targets, int64_t T,
                        std::optional<int64_t>, const int32_t*, const int32_t*) {
  load_batch(tokens, targets, max_B_, T);
}

void MaxRetrieval::forward_backward_part(int, double scale, const Tensor& gradients,
                                         const Tensor& loss) {
  forward();
  backend_.cross_entropy(rows(losses_), answers(), answers(), rows(targets_), scale);
  backend_.sum(loss, rows(losses_));
  backward(gradients);
}

// --- evaluation ---------------------------------------------------------------------------------

void MaxRetrieval::evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                            std::optional<int64_t>, double* losses, double* attention_statistics,
                            int32_t* likeliest, const int32_t*, const int32_t*) {
  require(!attention_statistics, "no sums of attention's rows");
  load_batch(tokens, targets, b, t);
  forward();
  if (likeliest) {
    backend_.argmax(rows(likeliest_), answers());
    backend_.download(likeliest, rows(likeliest_));
  }
  backend_.cross_entropy(rows(losses_), {}, answers(), rows(targets_), 1);
  backend_.download(host_losses_.data(), rows(losses_));
  const Tensor host(host_losses_.data(), losses_.dtype, {b * t});
  for (int64_t n = 0; n < b * t; ++n) losses[n] = get(host, n);
}

void MaxRetrieval::logits(const int32_t* tokens, int64_t b, int64_t t, std::optional<int64_t>,
                          Tensor out, const int32_t*) {
  load_batch(tokens, nullptr, b, t);
  forward();
  run(answer_, out, rows(attention_));
}

}  // namespace bamtrain
