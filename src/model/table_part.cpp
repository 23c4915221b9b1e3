// Priors of family table: a table over (head, distance) per part, recomputed when parameters
// change. Distances start at 0, or at -(T - 1) if attention is not causal.

#include "core/element.h"
#include "model/family_part.h"

namespace bamtrain {

namespace {

class TablePart final : public FamilyPart<TableFamily> {
 public:
  TablePart(const PartSource& from, LayersOfFamily layers) : FamilyPart(from, std::move(layers)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      shapes_.push_back(
          table_shape(prior(l).info(), prior(l).options, from.shape(), from.training_length));
    }
  }

  int64_t largest_parameter() const override { return parameters_.largest(); }
  void form(int64_t, AttentionForm& f) const override { f.bias = BiasForm::table; }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t H = from_.config.heads;
    arena.add("mechanisms.tables", &tables_, P, {layers_.parts(), H, distances(T)});
    random_of_.assign(static_cast<size_t>(from_.config.layers), -1);
    int64_t random = 0;
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (layers_.has(l) && draws_in(from_.randomization(l), use)) {
        random_of_[static_cast<size_t>(l)] = random++;
      }
    }
    if (random > 0) {
      arena.add("mechanisms.random_tables", &random_tables_, P, {random, H, distances(T)});
      host_table_.resize(static_cast<size_t>(H * distances(T)) * size_of(P));
    }
    if (use == ModelUse::training) arena.add("mechanisms.dtable", &dtable_, P, {H, distances(T)});
  }

  void refresh(const Tensor& master_weights) override {
    FamilyPart::refresh(master_weights);
    for_owners([&](int64_t l) { from_.backend.run(TableForward{table(l), use(l), theta(l)}); });
  }

  /// Fills the tables (H, distances) of priors without parameters with b at the drawn distances,
  /// which are negated for keys after the query.
  void draw(const int32_t* random, int64_t B, int64_t T) override {
    drawn_T_ = random ? T : 0;
    for (int64_t l = 0; random && l < from_.config.layers; ++l) {
      if (random_of_[static_cast<size_t>(l)] < 0) continue;
      const TableFamily& of_layer = family(l);
      const int32_t* const own = random + l * B * T;
      const Tensor table = random_table(l);
      const int64_t n = distances(T), behind = n - T;
      const Tensor host(host_table_.data(), table.dtype, {table.shape[0], n});
      for (int64_t h = 0; h < table.shape[0]; ++h) {
        for (int64_t d = -behind; d < T; ++d) {
          const int64_t drawn = d < 0 ? -own[-d] : own[d];
          put(host, h * n + behind + d,
              of_layer.bias(nullptr, shapes_[static_cast<size_t>(l)], h, drawn));
        }
      }
      from_.backend.upload(table, host.data);
    }
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    a.bias = TableBias{is_drawn(layer) ? random_table(layer) : table(layer)};
  }
  /// For the distances of T tokens; attention writes no others.
  void attach_gradients(int64_t, AttentionGradients& g, int64_t, int64_t T) const override {
    g.bias =
        TableBiasGradients{Tensor(dtable_.data, dtable_.dtype, {dtable_.shape[0], distances(T)})};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!parameters_.any(layer)) return;
    from_.backend.run(TableBackward{dtheta(layer, gradients),
                                    std::get<TableBiasGradients>(g.bias).dtable, use(layer),
                                    theta(layer)});
  }

 private:
  int64_t distances(int64_t T) const { return from_.config.attention.causal ? T : 2 * T - 1; }
  PriorUse use(int64_t layer) const {
    const TableShape& shape = shapes_[static_cast<size_t>(layer)];
    return {prior(layer).info(), shape.form, shape.gain, !from_.config.attention.causal,
            shape.asymmetry};
  }
  Tensor table(int64_t layer) const {
    return tables_.slice(0, layers_.part(layer), 1).reshaped({tables_.shape[1], tables_.shape[2]});
  }

  bool is_drawn(int64_t layer) const {
    return drawn_T_ > 0 && random_of_[static_cast<size_t>(layer)] >= 0;
  }
  Tensor random_table(int64_t layer) const {
    const Tensor own = random_tables_.slice(0, random_of_[static_cast<size_t>(layer)], 1);
    return Tensor(own.data, own.dtype, {random_tables_.shape[1], distances(drawn_T_)});
  }

  std::vector<TableShape> shapes_;  // by layer
  std::vector<int64_t> random_of_;  // by layer, an index in random_tables_; -1: not random
  std::vector<char> host_table_;    // (H, distances) P: of the current layer, for the upload
  int64_t drawn_T_ = 0;             // random distances of the current batch; 0: they count
  Tensor random_tables_;            // (random layers, H, distances) P; shorter batches share it
  Tensor tables_;                   // (parts, H, distances) P
  Tensor dtable_;                   // (H, distances) P; a shorter batch uses the same memory
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<TableFamily>(const PartSource& from) {
  return make_family_part<TablePart>(from);
}

}  // namespace bamtrain
