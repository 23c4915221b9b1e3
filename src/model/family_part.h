#pragma once
// What the parts of all families of priors share.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/mechanism_part.h"

namespace bamtrain {

/// The layers whose prior is of one family. Layers with the same prior and no parameters of their
/// own share the data computed from it.
class LayersOfFamily {
 public:
  /// `family`: PriorInfo::family.index().
  LayersOfFamily(const PartSource& from, size_t family);
  /// The parameters of their priors.
  LayerParameters parameters(const PartSource& from) const;
  bool has(int64_t layer) const { return places_[static_cast<size_t>(layer)].part >= 0; }
  /// Whether the layer is the first of those that share.
  bool owns(int64_t layer) const { return places_[static_cast<size_t>(layer)].owner; }
  /// Index of the data that a layer shares, below parts().
  int64_t part(int64_t layer) const { return places_[static_cast<size_t>(layer)].part; }
  int64_t parts() const { return parts_; }

 private:
  struct Place {
    int64_t part = -1;
    bool owner = false;
  };
  std::vector<Place> places_;
  int64_t parts_ = 0;
};

/// Base of the part of prior family F: its layers and their parameters.
template <class F>
class FamilyPart : public MechanismPart {
 public:
  using Hooks = F;

  FamilyPart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)), parameters_(layers_.parameters(from)) {}

  bool has(int64_t layer) const override { return layers_.has(layer); }
  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }

 protected:
  const PriorChoice& prior(int64_t layer) const { return from_.config.attention.prior.of(layer); }
  const F& family(int64_t layer) const { return *prior(layer).info().template as<F>(); }
  /// The parameters of a layer at the last refresh.
  std::span<const Tensor> theta(int64_t layer) { return parameters_.theta(layer, master_weights_); }
  std::span<const Tensor> dtheta(int64_t layer, const Tensor& gradients) {
    return parameters_.dtheta(layer, gradients);
  }
  /// Calls f(layer) for one of the layers that share each part.
  template <class Each>
  void for_owners(Each&& f) const {
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (layers_.has(l) && layers_.owns(l)) f(l);
    }
  }

  PartSource from_;
  LayersOfFamily layers_;
  LayerParameters parameters_;
  Tensor master_weights_;  // of the last refresh
};

/// Makes the part of a family; null if no layer uses the family.
template <class Part>
std::unique_ptr<MechanismPart> make_family_part(const PartSource& from) {
  LayersOfFamily layers(from, Family(typename Part::Hooks()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<Part>(from, std::move(layers));
}

}  // namespace bamtrain
