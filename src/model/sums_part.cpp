// Priors of family sums: running sums of gates. Incremental decoding caches them with the keys.

#include "model/family_part.h"
#include "model/kv_cache_capacity.h"
#include "model/mechanisms.h"

namespace bamtrain {

namespace {

class SumsPart final : public FamilyPart<SumsFamily> {
 public:
  using FamilyPart::FamilyPart;

  int64_t gates(int64_t) const override { return from_.config.heads; }
  void form(int64_t layer, AttentionForm& f) const override {
    f.bias = form_of(family(layer).bias);
    f.content_scale = family(layer).content_scale(prior(layer).options, from_.shape());
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

  void shift_cache(int64_t layer, int64_t from, int64_t count) override {
    shift_to_front(from_.backend, sums_of(layer), 2, from, count);
  }

  void attach(int64_t layer, Attention& a, const PartRows& rows) override {
    const int64_t B = a.q.shape[0], T = a.q.shape[1], H = from_.config.heads, past = a.past();
    const Tensor& of_layer = sums_of(layer);
    const Tensor sums = remembers_ ? of_layer.slice(0, 0, B).slice(2, 0, past + T)
                                   : Tensor(of_layer.data, of_layer.dtype, {B, H, T});
    from_.backend.run(SumsForward{sums.slice(2, past, T), rows.gates, bias(layer, master_weights_),
                                  past > 0 ? sums.slice(2, past - 1, 1) : Tensor()});
    a.bias = TokenBias{sums, family(layer).bias};
  }
  void attach_gradients(int64_t, AttentionGradients& g, int64_t B, int64_t T) const override {
    g.bias = TokenBiasGradients{rows_of(dsums_, B, from_.config.heads, T)};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows& rows,
                const Tensor& dgates, const Tensor& gradients) override {
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

  bool remembers_ = false;
  std::vector<Tensor> sums_;  // (B, H, T) f64: S of the current layer; generation: of each layer
  Tensor dsums_;              // (B, H, T) P
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<SumsFamily>(const PartSource& from) {
  return make_family_part<SumsPart>(from);
}

}  // namespace bamtrain
