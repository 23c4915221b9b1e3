// Priors of family transformer_xl: a vector r by head and distance, the product of sinusoids with
// w_r.
//
// r is (T, H D) in every layer. In training and evaluation, layers share one buffer, and r is
// recomputed before each layer's attention. At T 8,192 with 12 layers of 768 channels, all of them
// would take 300 MB, while an evaluation keeps nothing else by layer. For a single sequence, the
// product costs a twelfth of a layer's products. Incremental decoding keeps r of all layers, since
// its tokens come one by one. That is half of the KV cache in fp32 if every head has its own keys.
// Its rows are computed as the sequence needs them, at least doubling in number.

#include <algorithm>
#include <vector>

#include "core/element.h"
#include "model/family_part.h"

namespace bamtrain {

namespace {

class TransformerXlPart final : public FamilyPart<TransformerXlFamily> {
 public:
  TransformerXlPart(const PartSource& from, LayersOfFamily layers)
      : FamilyPart(from, std::move(layers)) {
    for_owners([this](int64_t l) { sinusoid_ = family(l).sinusoid; });
  }

  void form(int64_t, AttentionForm& f) const override { f.bias = BiasForm::relative; }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t H = from_.config.heads, D = from_.config.head_dim();
    keeps_ = use == ModelUse::generation;
    const int64_t n = distances(T);
    arena.add("mechanisms.sinusoids", &sinusoids_, P, {n, from_.config.width});
    random_of_.assign(static_cast<size_t>(from_.config.layers), -1);
    int64_t random = 0;
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (!layers_.has(l) || !draws_in(from_.randomization(l), use)) continue;
      random_of_[static_cast<size_t>(l)] = random++;
      range_ = from_.randomization(l).range;
    }
    if (random > 0) {
      arena.add("mechanisms.random_sinusoids", &random_sinusoids_, P,
                {random, n, from_.config.width});
    }
    arena.add("mechanisms.r", &r_, P, {keeps_ ? layers_.parts() : 1, n, H * D});
    if (use != ModelUse::training) return;
    arena.add("mechanisms.dr", &gradients_.dr, P, {n, H, D});
    arena.add("mechanisms.du", &gradients_.du, P, {H, D});
    arena.add("mechanisms.dw", &gradients_.dw, P, {H, D});
  }

  void upload_constants() override {
    upload_table(from_.backend, sinusoids_, [&](int64_t n, int64_t c) {
      return sinusoid_(n - behind(), c, from_.config.width);
    });
    if (!random_sinusoids_) return;
    const int64_t C = from_.config.width, n = known_rows();
    const auto row = static_cast<size_t>(C) * size_of(sinusoids_.dtype);
    known_rows_.resize(static_cast<size_t>(n) * row);
    drawn_rows_.resize(static_cast<size_t>(random_sinusoids_.shape[1]) * row);
    const Tensor host(known_rows_.data(), sinusoids_.dtype, {n, C});
    for (int64_t i = 0; i < host.size(); ++i)
      put(host, i, sinusoid_(i / C - known_behind(), i % C, C));
  }
  /// Keys after the query have the negated drawn distances.
  void draw(const int32_t* random, int64_t B, int64_t T) override {
    drawn_T_ = random ? T : 0;
    const auto row = static_cast<int64_t>(known_rows_.size()) / std::max<int64_t>(known_rows(), 1);
    const int64_t behind = distances(T) - T;
    for (int64_t l = 0; random && l < from_.config.layers; ++l) {
      if (random_of_[static_cast<size_t>(l)] < 0) continue;
      const int32_t* const own = random + l * B * T;
      for (int64_t d = -behind; d < T; ++d) {
        const int64_t drawn = known_behind() + (d < 0 ? -own[-d] : own[d]);
        std::copy_n(known_rows_.data() + drawn * row, row, drawn_rows_.data() + (behind + d) * row);
      }
      from_.backend.upload(drawn_sinusoids(l), drawn_rows_.data());
    }
  }
  void refresh(const Tensor& master_weights) override {
    FamilyPart::refresh(master_weights);
    formed_.assign(static_cast<size_t>(layers_.parts()), 0);
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    const int64_t T = a.k.shape[1], begin = first(T), end = begin + distances(T);
    int64_t& formed = formed_[static_cast<size_t>(layers_.part(layer))];
    if (!keeps_) formed = begin;
    if (formed < end) {
      constexpr int64_t kFew = 64;
      const int64_t ahead = keeps_ ? std::min(std::max(2 * formed, kFew), sinusoids_.shape[0]) : 0;
      form(layer, formed, std::max(end, ahead));
      formed = std::max(end, ahead);
    }
    const std::span<const Tensor> own = theta(layer);
    a.bias = RelativeBias{by_head(r(layer, begin, end)), own[1], own[2]};
  }
  void attach_gradients(int64_t, AttentionGradients& g, int64_t, int64_t T) const override {
    g.bias = RelativeBiasGradients{gradients_.dr.slice(0, 0, distances(T)), gradients_.du,
                                   gradients_.dw};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    Backend& backend = from_.backend;
    const auto& [dr, du, dw] = std::get<RelativeBiasGradients>(g.bias);
    const std::span<const Tensor> own = dtheta(layer, gradients);
    const int64_t n = dr.shape[0], T = a.k.shape[1];
    backend.linear_backward_weight(own[0], {}, dr.reshaped({n, r_.shape[2]}),
                                   sinusoids(layer, first(T), first(T) + n));
    backend.add(own[1], du);
    backend.add(own[2], dw);
  }

 private:
  // Rows of sinusoids_ and r_ are distances, starting at -behind(). T tokens have distances(T) of
  // them, from row first(T) on.
  bool causal() const { return from_.config.attention.causal; }
  int64_t distances(int64_t T) const { return causal() ? T : 2 * T - 1; }
  int64_t behind() const { return causal() ? 0 : (sinusoids_.shape[0] - 1) / 2; }
  int64_t first(int64_t T) const { return causal() ? 0 : behind() - (T - 1); }
  /// Rows [begin, end), H D columns.
  Tensor r(int64_t layer, int64_t begin, int64_t end) const {
    const Tensor own = r_.slice(0, keeps_ ? layers_.part(layer) : 0, 1);
    return own.reshaped({r_.shape[1], r_.shape[2]}).slice(0, begin, end - begin);
  }
  Tensor by_head(const Tensor& rows) const {
    return rows.reshaped({rows.shape[0], from_.config.heads, from_.config.head_dim()});
  }
  void form(int64_t layer, int64_t begin, int64_t end) {
    from_.backend.linear_forward(r(layer, begin, end), sinusoids(layer, begin, end),
                                 theta(layer)[0], {});
  }

  /// Rows [begin, end) of the planned ones, or of the current batch's if its distances are drawn.
  Tensor sinusoids(int64_t layer, int64_t begin, int64_t end) const {
    const bool drawn = drawn_T_ > 0 && random_of_[static_cast<size_t>(layer)] >= 0;
    if (!drawn) return sinusoids_.slice(0, begin, end - begin);
    return drawn_sinusoids(layer).slice(0, begin - first(drawn_T_), end - begin);
  }
  Tensor drawn_sinusoids(int64_t layer) const {
    const Tensor own = random_sinusoids_.slice(0, random_of_[static_cast<size_t>(layer)], 1);
    return Tensor(own.data, own.dtype, {distances(drawn_T_), from_.config.width});
  }
  /// Rows of all distances that may be drawn, after those of negative distances.
  int64_t known_behind() const { return causal() ? 0 : std::max<int64_t>(range_ - 1, 0); }
  int64_t known_rows() const { return range_ + known_behind(); }

  double (*sinusoid_)(int64_t, int64_t, int64_t) = nullptr;  // TransformerXlFamily's
  bool keeps_ = false;                                       // r of every layer
  std::vector<int64_t> formed_;     // by part: computed rows of r_ since the last refresh
  Tensor sinusoids_;                // (distances, C) P
  std::vector<int64_t> random_of_;  // by layer, an index in random_sinusoids_; -1: not random
  int64_t range_ = 0;               // of random distances
  int64_t drawn_T_ = 0;             // random distances of the current batch; 0: they count
  std::vector<char> known_rows_, drawn_rows_;  // (known_rows(), C), (distances, C) P: on the host
  Tensor random_sinusoids_;                    // (random layers, distances, C) P
  Tensor r_;  // (1, distances, H D) P: of the current layer; else (parts, distances, H D)
  RelativeBiasGradients gradients_;  // of the current layer
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<TransformerXlFamily>(const PartSource& from) {
  return make_family_part<TransformerXlPart>(from);
}

}  // namespace bamtrain
