#include "model/model.h"

#include <algorithm>
#include <optional>

#include "core/element.h"
#include "core/ignore_index.h"
#include "model/projection_views.h"
#include "model/sequence.h"

namespace bamtrain {

namespace {

/// Parts of the blocks' backward pass: what follows the last one's messages is not hidden.
constexpr int64_t kMostBlockParts = 4;

}  // namespace

Model::Model(const ModelConfig& config, int64_t sequence_length, Backend& backend,
             Dtype activations)
    : config_(config),
      backend_(backend),
      dtype_(activations),
      layout_(config, sequence_length),
      embedding_(layout_.find("model.embed_tokens.weight")),
      position_embedding_(layout_.find("model.embed_positions.weight")),
      final_norm_(find_norm(post() ? layer_prefix(config.layers - 1) + "post_feedforward_layernorm"
                                   : "model.norm")),
      head_(config.tied ? embedding_ : layout_.find("lm_head.weight")),
      head_bias_(layout_.find("lm_head.bias")),
      mechanisms_(config, sequence_length, layout_, backend) {
  for (int64_t l = 0; l < config.layers; ++l) blocks_.push_back(find_block(l));
}

void Model::set_master_weights(Tensor master_weights) {
  master_weights_ = master_weights;
  const auto N = static_cast<size_t>(max_B_ * max_T_);
  host_first_key_.resize(mechanisms_.windows().size() * N);
  if (!causal()) host_last_key_.resize(host_first_key_.size());
  host_positions_.resize(N);
  documents_.assign(static_cast<size_t>(max_B_), 0);
  last_documents_ = documents_;
  for (auto* const of_rows : {&scored_rows_, &scored_targets_, &scored_likeliest_}) {
    of_rows->reserve(N);
  }
  host_losses_.resize(N * size_of(backend_.parameter_dtype()));
  const int64_t live = max_B_ * config_.heads * live_groups(max_T_) * live_words(max_T_) *
                       static_cast<int64_t>(sizeof(int32_t));
  host_rows_.resize(static_cast<size_t>(entropy_ ? std::max(entropy_.bytes(), live) : 0));
  for (int64_t l = 0; l < config_.layers; ++l) clear_beside_gates(l, master_weights_);
  if (dqkv_ && layout_.gate_columns() > 0) backend_.zero(dqkv_);
}

/// Zeroes the weights of unused gate columns, and the biases of all gate columns. Products read and
/// write them, but they belong to no parameter and must not count in the gradient norm. `flat` may
/// be the exact parameters alone.
void Model::clear_beside_gates(int64_t l, const Tensor& flat) {
  const int64_t G = layout_.gate_columns(), used = mechanisms_.gates(l), W = qkv_width();
  if (used < G && flat.size() == layout_.elements()) {
    const Tensor weight = fused_view_of(flat, block(l).qkv, W, config_.width);
    backend_.zero(weight.slice(0, W - G + used, G - used));
  }
  const Tensor bias = fused_view_of(flat, block(l).qkv_bias, W, 1);
  if (bias && G > 0) backend_.zero(bias.slice(0, W - G, G));
}

void Model::refresh() {
  if (compute_) backend_.convert(compute_, master_weights_);
  refresh_mechanisms();
}

void Model::refresh_mechanisms() { mechanisms_.refresh(master_weights_); }

/// The part of a planned tensor that the current batch uses: its first N rows.
Tensor Model::rows(const Tensor& t) const { return t.slice(0, 0, B_ * T_); }

void Model::load_batch(const int32_t* tokens, const int32_t* targets, int64_t B, int64_t T,
                       std::optional<int64_t> document_start, const int32_t* positions,
                       const int32_t* lengths) {
  require(B <= max_B_ && T <= max_T_, "a batch within the planned size");
  check_length(kv_cache_.tokens() + T);
  if (!config_.attention.document_mask) document_start.reset();
  B_ = B;
  T_ = T;
  lay_out(tokens, document_start, lengths);
  const auto batch = [&](const Tensor& t) { return Tensor(t.data, t.dtype, {B * T}); };
  backend_.upload(batch(tokens_), tokens);
  if (targets) backend_.upload(batch(targets_), targets);
  const int64_t keys = std::ssize(mechanisms_.windows()) * B * T;
  backend_.upload(first_key_.slice(0, 0, keys), host_first_key_.data());
  if (!causal()) backend_.upload(last_key_.slice(0, 0, keys), host_last_key_.data());
  backend_.upload(batch(positions_), host_positions_.data());
  drawn_ = positions != nullptr;
  if (mechanisms_.randomization().what == Randomized::distances) mechanisms_.draw(positions, B, T);
  if (drawn_ && random_positions_) {
    backend_.upload(Tensor(random_positions_.data, Dtype::i32, {draws() * B * T}), positions);
  }
}

void Model::lay_out(const int32_t* tokens, std::optional<int64_t> document_start,
                    const int32_t* lengths) {
  require(causal() || lengths != nullptr, "the lengths of sequences that are seen as a whole");
  int64_t row = 0;
  for (const int64_t window : mechanisms_.windows()) {
    for (int64_t b = 0; b < B_; ++b, ++row) {
      const int32_t* const own = tokens + b * T_;
      int32_t* const first_key = host_first_key_.data() + row * T_;
      int32_t* const positions = host_positions_.data() + b * T_;
      if (causal()) {
        const auto n = static_cast<size_t>(b);
        last_documents_[n] =
            lay_out_sequence(own, T_, document_start, window, first_key, positions, documents_[n]);
      } else {
        require(1 <= lengths[b] && lengths[b] <= T_, "a sequence of 1 to T tokens");
        lay_out_both_sides(own, T_, lengths[b], document_start, window, first_key,
                           host_last_key_.data() + row * T_, positions);
      }
    }
  }
}

AttentionSaved Model::saved_of(const LayerActivations& x) const {
  return bamtrain::saved_of(x.saved, B_, config_.heads, T_);
}

Tensor Model::positions() const { return Tensor(positions_.data, Dtype::i32, {B_, T_}); }

/// The positions by which layer l rotates, or which the embedding adds.
Tensor Model::random_positions(int64_t l) const {
  const int64_t N = B_ * T_, draw = draws() > 1 ? l : 0;
  return Tensor(random_positions_.data, Dtype::i32, {draws() * N})
      .slice(0, draw * N, N)
      .reshaped({B_, T_});
}

Tensor Model::embedding_positions() const {
  const bool random = drawn_ && mechanisms_.has<EmbeddingFamily>();
  return (random ? random_positions(0) : positions()).reshaped({B_ * T_});
}

Tensor Model::of_window(const Tensor& keys, int64_t l) const {
  return keys.slice(0, mechanisms_.window(l) * B_ * T_, B_ * T_).reshaped({B_, T_});
}

Attention Model::attention_of(int64_t l) {
  const int64_t H = config_.heads, K = config_.kv_heads;
  const Tensor now = qkv(l);
  Attention a;
  a.q = heads_of(now, 0, H);
  a.k = kv_cache_ ? kv_cache_.keys(l, B_, T_) : heads_of(now, H, K);
  a.v = kv_cache_ ? kv_cache_.values(l, B_, T_) : heads_of(now, H + K, K);
  a.first_key = of_window(first_key_, l);
  if (!causal()) a.last_key = of_window(last_key_, l);
  mechanisms_.attach(l, a, gates_of(now), positions());
  return a;
}

Tensor Model::heads_of(const Tensor& fused, int64_t begin, int64_t count) const {
  const int64_t D = config_.head_dim();
  return bamtrain::heads_of(fused, B_, begin * D, count, D);
}

Tensor Model::gates_of(const Tensor& fused) const {
  return bamtrain::gates_of(fused, B_, layout_.gate_columns());
}

// --- forward ------------------------------------------------------------------------------------

void Model::embedding_forward() {
  Tensor table = view_of(master_weights_, position_embedding_);
  if (const Tensor fixed = mechanisms_.position_table()) table = fixed;
  backend_.embedding_forward(rows(layer(0).residual), rows(tokens_), view_of(weights(), embedding_),
                             embed_scale(), embedding_positions(), table);
}

void Model::forward(double* attention_statistics) {
  embedding_forward();
  for (int64_t l = 0; l < config_.layers; ++l) forward_block(l, attention_statistics);
  final_norm_forward();
}

void Model::final_norm_forward() {
  norm_forward(final_, norm_, stats_, stream_behind(config_.layers - 1), branch_, final_norm_);
  if (observer_) observer_->stream(config_.layers, rows(final_));
}

/// Forward and backward together, so that logits exist for only one chunk of rows at a time. The
/// adjoint of the final norm's output goes to dnorm_.
void Model::head(const Tensor& norm, double scale, const Tensor* gradients, bool likeliest) {
  const int64_t N = norm.shape[0];
  const Tensor w = view_of(weights(), head_), bias = view_of(master_weights_, head_bias_);
  for (int64_t begin = 0; begin < N; begin += chunk_) {
    const int64_t R = std::min(chunk_, N - begin);
    const auto of_chunk = [&](const Tensor& t) {
      return t.slice(0, 0, R).slice(1, 0, config_.outputs());
    };
    const Tensor x = norm.slice(0, begin, R), z = of_chunk(logits_);
    const Tensor dz = !gradients ? Tensor() : dlogits_ ? of_chunk(dlogits_) : z;
    backend_.linear_forward(z, x, w, bias);
    if (likeliest) backend_.argmax(likeliest_.slice(0, begin, R), z);
    backend_.cross_entropy(losses_.slice(0, begin, R), dz, z, targets_.slice(0, begin, R), scale);
    if (!gradients) continue;
    backend_.linear_backward_input(dnorm_.slice(0, begin, R), dz, w);
    backend_.linear_backward_weight(view_of(*gradients, head_), view_of(*gradients, head_bias_), dz,
                                    x);
  }
}

void Model::gather_norm(const Tensor& dst, const std::vector<int32_t>& rows) {
  const auto R = static_cast<int64_t>(rows.size());
  const Tensor places = tokens_.slice(0, 0, R);
  backend_.upload(places, rows.data());
  backend_.embedding_forward(dst, places, norm_, 1, places, {});
}

// --- backward -----------------------------------------------------------------------------------

void Model::embedding_backward(const Tensor& gradients) {
  backend_.embedding_backward(view_of(gradients, embedding_), embed_scale(),
                              view_of(gradients, position_embedding_), rows(dstream_),
                              rows(tokens_), embedding_positions());
}

void Model::load(const int32_t* tokens, const int32_t* targets, int64_t T,
                 std::optional<int64_t> document_start, const int32_t* positions,
                 const int32_t* lengths) {
  require((positions != nullptr) == (draws() > 0), "positions where the prior randomizes them");
  load_batch(tokens, targets, max_B_, T, document_start, positions, lengths);
}

int Model::block_parts() const {
  return static_cast<int>(std::min(config_.layers, kMostBlockParts));
}

/// The first part has one: nothing hides what it waits for, and what it leaves to be sent.
FlatRange Model::blocks_of_part(int part) const {
  const int64_t forward = std::min(part, parts() - 1 - part), others = config_.layers - 1;
  if (forward == 0) return {0, 1};
  return {1 + others * (forward - 1) / (block_parts() - 1),
          1 + others * forward / (block_parts() - 1)};
}

int Model::part_of(const Parameter& p) const {
  if (&p == embedding_) return 0;
  if (&p == head_) return block_parts();
  std::optional<int64_t> layer;
  if (is_mechanism(p.group)) layer = p.layer;  // the first of those that share it
  for (int64_t l = 0; !layer && l < config_.layers; ++l) {
    if (p.name.starts_with(layer_prefix(l))) layer = l;
  }
  require(layer.has_value(), "a matrix of a block");
  int part = 0;
  while (*layer >= blocks_of_part(part).end) ++part;
  return part;
}

/// Those that are not matrices are few, and all belong to part 0. Gaps between parameters belong to
/// what is before them.
std::vector<FlatRange> Model::ranges_of(int part) const {
  std::vector<FlatRange> ranges;
  if (part == 0) ranges.push_back({0, layout_.exact_elements()});
  int before = -1;  // the part of the matrix before
  for (const Parameter& p : layout_.all()) {
    if (!p.rounded) continue;
    const int own = part_of(p);
    if (own == part && before != part) ranges.push_back({p.offset, layout_.elements()});
    if (own != part && before == part) ranges.back().end = p.offset;
    before = own;
  }
  return ranges;
}

void Model::forward_backward_part(int part, double scale, const Tensor& gradients,
                                  const Tensor& loss) {
  if (part < block_parts()) {
    const auto [first, end] = blocks_of_part(part);
    if (first == 0) embedding_forward();
    for (int64_t l = first; l < end; ++l) forward_block(l, nullptr);
    return;
  }
  if (part == block_parts()) {
    final_norm_forward();
    head(rows(norm_), scale, &gradients);
    backend_.sum(loss, rows(losses_));
    backend_.zero(rows(dstream_));
    norm_backward(dstream_, dnorm_, final_, stats_, final_norm_, gradients);
    if (observer_) observer_->stream_gradient(config_.layers, rows(dstream_));
    return;
  }
  const auto [first, end] = blocks_of_part(part);
  for (int64_t l = end - 1; l >= first; --l) {
    recompute_block(l);
    backward_block(l, gradients);
  }
  if (first == 0) embedding_backward(gradients);
}

// --- evaluation ---------------------------------------------------------------------------------

void Model::check_length(int64_t T) const {
  const int64_t known = position_embedding_ ? position_embedding_->shape[0] : T;
  if (T > known) {
    throw Error(ExitCode::config, "model.attention.prior",
                "at most " + std::to_string(known) + " positions, the size of the learned table",
                std::to_string(T), "use shorter sequences, or train with a longer table");
  }
  mechanisms_.check_length(T);
}

void Model::score(const int32_t* targets, double* losses, int32_t* likeliest) {
  const int64_t N = B_ * T_;
  scored_rows_.clear();
  scored_targets_.clear();
  for (int64_t n = 0; n < N; ++n) {
    if (targets[n] == kIgnoreIndex) continue;
    scored_rows_.push_back(static_cast<int32_t>(n));
    scored_targets_.push_back(targets[n]);
  }
  std::fill_n(losses, N, 0.0);
  if (likeliest) std::fill_n(likeliest, N, kIgnoreIndex);
  const auto R = static_cast<int64_t>(scored_rows_.size());
  if (R == 0) return;
  Tensor norm = rows(norm_);
  if (R < N) {
    norm = branch_.slice(0, 0, R);
    gather_norm(norm, scored_rows_);
  }
  backend_.upload(targets_.slice(0, 0, R), scored_targets_.data());
  head(norm, 1, nullptr, likeliest != nullptr);
  const auto put_each = [&](auto* to, auto&& of) {
    for (int64_t r = 0; r < R; ++r) to[scored_rows_[static_cast<size_t>(r)]] = of(r);
  };
  if (likeliest) {
    scored_likeliest_.resize(scored_rows_.size());
    backend_.download(scored_likeliest_.data(), likeliest_.slice(0, 0, R));
    put_each(likeliest, [&](int64_t r) { return scored_likeliest_[static_cast<size_t>(r)]; });
  }
  backend_.download(host_losses_.data(), losses_.slice(0, 0, R));
  const Tensor host(host_losses_.data(), losses_.dtype, {R});
  put_each(losses, [&](int64_t r) { return get(host, r); });
}

void Model::evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                     std::optional<int64_t> document_start, double* losses,
                     double* attention_statistics, int32_t* likeliest, const int32_t* positions,
                     const int32_t* lengths) {
  require(!attention_statistics || entropy_, "sums of attention's rows that were planned");
  require((positions != nullptr) == randomization().in_evaluation,
          "positions where evaluation draws them");
  load_batch(tokens, nullptr, b, t, document_start, positions, lengths);
  forward(attention_statistics);
  score(targets, losses, likeliest);
}

void Model::logits(const int32_t* tokens, int64_t b, int64_t t,
                   std::optional<int64_t> document_start, Tensor out, const int32_t* lengths) {
  load_batch(tokens, nullptr, b, t, document_start, nullptr, lengths);
  forward();
  backend_.linear_forward(out, rows(norm_), view_of(weights(), head_),
                          view_of(master_weights_, head_bias_));
}

// --- incremental decoding -----------------------------------------------------------------------

void Model::begin_decoding(std::span<const int64_t> padding) {
  require(kv_cache_ && std::ssize(padding) >= 1 && std::ssize(padding) <= max_B_,
          "as many texts as were planned");
  kv_cache_.clear();
  texts_ = std::ssize(padding);
  std::copy(padding.begin(), padding.end(), documents_.begin());
}

void Model::prefill_chunk(const int32_t* tokens, int64_t n, std::optional<int64_t> document_start) {
  require(texts_ >= 1, "texts that have begun");
  load_batch(tokens, nullptr, texts_, n, document_start, nullptr, nullptr);
  kv_cache_.make_room(backend_, n);
  forward();
  kv_cache_.append(n);
  for (size_t b = 0; b < static_cast<size_t>(texts_); ++b) documents_[b] = last_documents_[b] - n;
}

void Model::append(const int32_t* tokens, int64_t n, std::optional<int64_t> document_start,
                   Tensor out) {
  prefill_chunk(tokens, n, document_start);
  if (!out) return;
  Tensor norm = rows(norm_);
  if (const int64_t R = out.shape[0]; R < texts_ * n) {
    require(R == texts_, "a row for each text, or for each token");
    scored_rows_.clear();
    for (int64_t b = 0; b < R; ++b) scored_rows_.push_back(static_cast<int32_t>((b + 1) * n - 1));
    norm = branch_.slice(0, 0, R);
    gather_norm(norm, scored_rows_);
  }
  backend_.linear_forward(out, norm, view_of(weights(), head_),
                          view_of(master_weights_, head_bias_));
}

void Model::append(const int32_t* tokens, const int32_t* targets, int64_t n,
                   std::optional<int64_t> document_start, double* losses, int32_t* likeliest) {
  prefill_chunk(tokens, n, document_start);
  score(targets, losses, likeliest);
}

DecodeState Model::decode_state() {
  const int64_t to_come = std::min(kMaxPrefillChunk, kv_cache_.longest() - kv_cache_.tokens());
  if (to_come > 0) kv_cache_.make_room(backend_, to_come);
  return {kv_cache_.tokens(), {documents_.begin(), documents_.begin() + texts_}};
}

void Model::rollback(const DecodeState& state) {
  require(std::ssize(state.documents) == texts_, "a state of these texts");
  kv_cache_.drop_last(kv_cache_.tokens() - state.tokens);
  std::copy(state.documents.begin(), state.documents.end(), documents_.begin());
}

}  // namespace bamtrain
