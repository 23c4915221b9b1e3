// Priors of family table: a table over (head, distance) per part, formed whenever parameters
// change.

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class TablePart final : public MechanismPart {
 public:
  TablePart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)), parameters_(layers_.parameters(from)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      const PriorChoice& p = from.config.attention.prior.of(l);
      shapes_.push_back(table_shape(p.info(), p.options, from.shape(), from.training_length));
    }
  }

  int64_t largest_parameter() const override { return parameters_.largest(); }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t H = from_.config.heads;
    arena.add("mechanisms.tables", &tables_, P, {layers_.parts(), H, T});
    if (use == ModelUse::training) arena.add("mechanisms.dtable", &dtable_, P, {H, T});
  }

  void refresh(const Tensor& masters) override {
    masters_ = masters;
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (!layers_.has(l) || !layers_.owns(l)) continue;
      from_.backend.mechanisms().run(TableForward{table(l), use(l), parameters_.theta(l, masters)});
    }
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    if (layers_.has(layer)) a.bias = TableBias{table(layer)};
  }
  /// Of the distances that T tokens have: attention writes no others.
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t T) const override {
    if (!layers_.has(layer)) return;
    g.bias = TableBiasGradients{Tensor(dtable_.data, dtable_.dtype, {dtable_.shape[0], T})};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!layers_.has(layer) || !parameters_.any(layer)) return;
    from_.backend.mechanisms().run(TableBackward{parameters_.dtheta(layer, gradients),
                                                 std::get<TableBiasGradients>(g.bias).dtable,
                                                 use(layer), parameters_.theta(layer, masters_)});
  }

 private:
  PriorUse use(int64_t layer) const {
    const TableShape& shape = shapes_[static_cast<size_t>(layer)];
    return {from_.config.attention.prior.of(layer).info(), shape.form, shape.gain};
  }
  Tensor table(int64_t layer) const {
    return tables_.slice(0, layers_.part(layer), 1).reshaped({tables_.shape[1], tables_.shape[2]});
  }

  PartSource from_;
  LayersOfFamily layers_;
  LayerParameters parameters_;
  std::vector<TableShape> shapes_;  // by layer
  Tensor masters_;                  // of the last refresh
  Tensor tables_;                   // (parts, H, T) P
  Tensor dtable_;                   // (H, T) P; of a shorter batch (H, its T) in the same memory
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<TableFamily>(const PartSource& from) {
  LayersOfFamily layers(from, Family(TableFamily()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<TablePart>(from, std::move(layers));
}

}  // namespace bamtrain
