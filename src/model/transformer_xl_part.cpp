// Priors of family transformer_xl: a vector r by head and distance, the product of sinusoids with
// w_r.
//
// r is (T, H D) in every layer. In training and evaluation layers share the memory of one, and it
// is formed anew where a layer's attention is at hand: at T 8,192 with 12 layers of 768 channels
// all of them would be 300 MB, where an evaluation keeps nothing else by layer, and the product is
// a twelfth of a layer's for a single sequence. A text that grows keeps those of all layers, half
// of what its keys and values take in fp32 where every head has keys of its own: its tokens come
// one by one. They are formed as the text needs them, at least as many again as there are.

#include <algorithm>
#include <vector>

#include "core/element.h"
#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class TransformerXlPart final : public MechanismPart {
 public:
  TransformerXlPart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)), parameters_(layers_.parameters(from)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      const auto* const family = from.config.attention.prior.of(l).info().as<TransformerXlFamily>();
      if (family) sinusoid_ = family->sinusoid;
    }
  }

  void add_workspace(WorkspaceShape& w) const override { w.content_bias = true; }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t H = from_.config.heads, D = from_.config.head_dim();
    keeps_ = use == ModelUse::generation;
    arena.add("mechanisms.sinusoids", &sinusoids_, P, {T, from_.config.width});
    random_of_.assign(static_cast<size_t>(from_.config.layers), -1);
    int64_t random = 0;
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (!layers_.has(l) || !draws_in(from_.randomization(l), use)) continue;
      random_of_[static_cast<size_t>(l)] = random++;
      range_ = from_.randomization(l).range;
    }
    if (random > 0) {
      arena.add("mechanisms.random_sinusoids", &random_sinusoids_, P,
                {random, T, from_.config.width});
    }
    arena.add("mechanisms.r", &r_, P, {keeps_ ? layers_.parts() : 1, T, H * D});
    if (use != ModelUse::training) return;
    arena.add("mechanisms.dr", &gradients_.dr, P, {T, H, D});
    arena.add("mechanisms.du", &gradients_.du, P, {H, D});
    arena.add("mechanisms.dw", &gradients_.dw, P, {H, D});
  }

  void upload_constants() override {
    upload_table(from_.backend, sinusoids_,
                 [&](int64_t d, int64_t c) { return sinusoid_(d, c, from_.config.width); });
    if (!random_sinusoids_) return;
    const int64_t C = from_.config.width;
    const auto row = static_cast<size_t>(C) * size_of(sinusoids_.dtype);
    known_rows_.resize(static_cast<size_t>(range_) * row);
    drawn_rows_.resize(static_cast<size_t>(random_sinusoids_.shape[1]) * row);
    const Tensor host(known_rows_.data(), sinusoids_.dtype, {range_, C});
    for (int64_t i = 0; i < host.size(); ++i) put(host, i, sinusoid_(i / C, i % C, C));
  }
  void draw(const int32_t* distances, int64_t B, int64_t T) override {
    drawn_T_ = distances ? T : 0;
    const auto row = static_cast<int64_t>(known_rows_.size()) / std::max<int64_t>(range_, 1);
    for (int64_t l = 0; distances && l < from_.config.layers; ++l) {
      if (random_of_[static_cast<size_t>(l)] < 0) continue;
      const int32_t* const own = distances + l * B * T;
      for (int64_t d = 0; d < T; ++d) {
        std::copy_n(known_rows_.data() + own[d] * row, row, drawn_rows_.data() + d * row);
      }
      from_.backend.upload(drawn_sinusoids(l), drawn_rows_.data());
    }
  }
  void refresh(const Tensor& masters) override {
    masters_ = masters;
    formed_.assign(static_cast<size_t>(layers_.parts()), 0);
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    if (!layers_.has(layer)) return;
    const int64_t distances = a.k.shape[1];
    int64_t& formed = formed_[static_cast<size_t>(layers_.part(layer))];
    if (!keeps_) formed = 0;
    if (formed < distances) {
      constexpr int64_t kFew = 64;
      const int64_t ahead = keeps_ ? std::min(std::max(2 * formed, kFew), sinusoids_.shape[0]) : 0;
      form(layer, formed, std::max(distances, ahead));
      formed = std::max(distances, ahead);
    }
    const std::span<const Tensor> theta = parameters_.theta(layer, masters_);
    a.bias = RelativeBias{by_head(r(layer, distances)), theta[1], theta[2]};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t T) const override {
    if (!layers_.has(layer)) return;
    g.bias = RelativeBiasGradients{gradients_.dr.slice(0, 0, T), gradients_.du, gradients_.dw};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!layers_.has(layer)) return;
    Backend& backend = from_.backend;
    const auto& [dr, du, dw] = std::get<RelativeBiasGradients>(g.bias);
    const std::span<const Tensor> dtheta = parameters_.dtheta(layer, gradients);
    const int64_t T = dr.shape[0];
    backend.linear_backward_weight(dtheta[0], {}, dr.reshaped({T, r_.shape[2]}),
                                   sinusoids(layer).slice(0, 0, T));
    backend.add(dtheta[1], du);
    backend.add(dtheta[2], dw);
  }

 private:
  /// (distances, H D).
  Tensor r(int64_t layer, int64_t distances) const {
    const Tensor own = r_.slice(0, keeps_ ? layers_.part(layer) : 0, 1);
    return own.reshaped({r_.shape[1], r_.shape[2]}).slice(0, 0, distances);
  }
  Tensor by_head(const Tensor& rows) const {
    return rows.reshaped({rows.shape[0], from_.config.heads, from_.config.head_dim()});
  }
  void form(int64_t layer, int64_t begin, int64_t end) {
    from_.backend.linear_forward(r(layer, end).slice(0, begin, end - begin),
                                 sinusoids(layer).slice(0, begin, end - begin),
                                 parameters_.theta(layer, masters_)[0], {});
  }

  /// Of the distances of the batch at hand.
  Tensor sinusoids(int64_t layer) const {
    const bool drawn = drawn_T_ > 0 && random_of_[static_cast<size_t>(layer)] >= 0;
    return drawn ? drawn_sinusoids(layer) : sinusoids_;
  }
  Tensor drawn_sinusoids(int64_t layer) const {
    const Tensor own = random_sinusoids_.slice(0, random_of_[static_cast<size_t>(layer)], 1);
    return Tensor(own.data, own.dtype, {drawn_T_, from_.config.width});
  }

  PartSource from_;
  LayersOfFamily layers_;
  LayerParameters parameters_;
  double (*sinusoid_)(int64_t, int64_t, int64_t) = nullptr;  // TransformerXlFamily's
  bool keeps_ = false;                                       // r of every layer
  Tensor masters_;                                           // of the last refresh
  std::vector<int64_t> formed_;                              // by part, distances since then
  Tensor sinusoids_;                                         // (T, C) P
  std::vector<int64_t> random_of_;  // by layer, a number in random_sinusoids_; -1: none
  int64_t range_ = 0;               // of random distances
  int64_t drawn_T_ = 0;             // distances of the batch at hand that are random; 0: they count
  std::vector<char> known_rows_, drawn_rows_;  // (range, C), (T, C) P: in host memory
  Tensor random_sinusoids_;                    // (layers with such, T, C) P
  Tensor r_;                         // (1, T, H D) P: of the layer at hand; else (parts, T, H D)
  RelativeBiasGradients gradients_;  // of the layer at hand
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<TransformerXlFamily>(const PartSource& from) {
  LayersOfFamily layers(from, Family(TransformerXlFamily()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<TransformerXlPart>(from, std::move(layers));
}

}  // namespace bamtrain
