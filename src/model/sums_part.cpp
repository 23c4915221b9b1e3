// Priors of family sums: running sums of gates. Incremental decoding caches them with the keys.

#include "model/kv_cache_capacity.h"
#include "model/mechanism_part.h"
#include "model/mechanisms.h"

namespace bamtrain {

namespace {

class SumsPart final : public MechanismPart {
 public:
  SumsPart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)), parameters_(layers_.parameters(from)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      const PriorChoice& p = from.config.attention.prior.of(l);
      const auto* const family = p.info().as<SumsFamily>();
      biases_.push_back(family ? family->bias : Formula::difference);
      content_scales_.push_back(family ? family->content_scale(p.options, from.shape()) : 0);
    }
  }

  int64_t gates(int64_t layer) const override {
    return layers_.has(layer) ? from_.config.heads : 0;
  }
  int64_t largest_parameter() const override { return parameters_.largest(); }
  void form(int64_t layer, AttentionForm& f) const override {
    if (!layers_.has(layer)) return;
    f.bias = form_of(biases_[static_cast<size_t>(layer)]);
    f.content_scale = content_scales_[static_cast<size_t>(layer)];
  }

  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) override {
    const int64_t H = from_.config.heads;
    remembers_ = use == ModelUse::generation;
    sums_.resize(static_cast<size_t>(remembers_ ? from_.config.layers : 1));
    for (size_t l = 0; l < sums_.size(); ++l) {
      const auto layer = static_cast<int64_t>(l);
      if (remembers_ && !layers_.has(layer)) continue;
      const int64_t window = layer_window(from_.config, layer, from_.training_length);
      arena.add("mechanisms.sums", &sums_[l], Dtype::f64,
                {B, H, remembers_ ? kv_cache_capacity(window, T) : T});
    }
    if (use == ModelUse::training) {
      arena.add("mechanisms.dsums", &dsums_, from_.backend.parameter_dtype(), {B, H, T});
    }
  }

  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }
  void shift_cache(int64_t layer, int64_t from, int64_t count) override {
    if (layers_.has(layer)) shift_to_front(from_.backend, sums_of(layer), 2, from, count);
  }

  void attach(int64_t layer, Attention& a, const PartRows& rows) override {
    if (!layers_.has(layer)) return;
    const auto l = static_cast<size_t>(layer);
    const int64_t B = a.q.shape[0], T = a.q.shape[1], H = from_.config.heads, past = a.past();
    a.content_scale = content_scales_[l];
    const Tensor& of_layer = sums_of(layer);
    const Tensor sums = remembers_ ? of_layer.slice(0, 0, B).slice(2, 0, past + T)
                                   : Tensor(of_layer.data, of_layer.dtype, {B, H, T});
    from_.backend.run(SumsForward{sums.slice(2, past, T), rows.gates, bias(layer, master_weights_),
                                  past > 0 ? sums.slice(2, past - 1, 1) : Tensor()});
    a.bias = TokenBias{sums, biases_[l]};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const override {
    if (layers_.has(layer)) {
      g.bias = TokenBiasGradients{rows_of(dsums_, B, from_.config.heads, T)};
    }
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows& rows,
                const Tensor& dgates, const Tensor& gradients) override {
    if (!layers_.has(layer)) return;
    from_.backend.run(SumsBackward{dgates, bias(layer, gradients),
                                   std::get<TokenBiasGradients>(g.bias).dnumbers, rows.gates,
                                   bias(layer, master_weights_)});
  }

 private:
  const Tensor& sums_of(int64_t layer) const {
    return sums_[remembers_ ? static_cast<size_t>(layer) : 0];
  }
  /// The bias of a layer's gates, or its gradient.
  Tensor bias(int64_t layer, const Tensor& flat) { return parameters_.theta(layer, flat)[0]; }

  PartSource from_;
  LayersOfFamily layers_;
  LayerParameters parameters_;
  std::vector<Formula> biases_;         // by layer
  std::vector<double> content_scales_;  // likewise
  bool remembers_ = false;
  Tensor master_weights_;     // of the last refresh
  std::vector<Tensor> sums_;  // (B, H, T) f64: S of the current layer; generation: of each layer
  Tensor dsums_;              // (B, H, T) P
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<SumsFamily>(const PartSource& from) {
  LayersOfFamily layers(from, Family(SumsFamily()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<SumsPart>(from, std::move(layers));
}

}  // namespace bamtrain
