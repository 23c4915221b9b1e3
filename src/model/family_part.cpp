#include "model/family_part.h"

#include <algorithm>

namespace bamtrain {

LayersOfFamily::LayersOfFamily(const PartSource& from, size_t family) {
  const PriorConfig& all = from.config.attention.prior;
  places_.resize(static_cast<size_t>(from.config.layers));
  for (int64_t l = 0; l < from.config.layers; ++l) {
    const PriorChoice& choice = all.of(l);
    if (choice.info().family.index() != family) continue;
    const MechanismParameters parameters = choice.parameters(from.shape());
    const bool shared = std::all_of(parameters.begin(), parameters.end(),
                                    [](const MechanismParameter& p) { return p.shared; });
    Place& place = places_[static_cast<size_t>(l)];
    for (int64_t k = 0; shared && place.part < 0 && k < l; ++k) {
      if (all.of(k) == choice) place.part = part(k);
    }
    place.owner = place.part < 0;
    if (place.owner) place.part = parts_++;
  }
}

LayerParameters LayersOfFamily::parameters(const PartSource& from) const {
  LayerParameters out;
  for (int64_t l = 0; l < from.config.layers; ++l) {
    const MechanismParameters list = from.config.attention.prior.of(l).parameters(from.shape());
    out.add(from, l, has(l) ? list : MechanismParameters(), "prior");
  }
  return out;
}

}  // namespace bamtrain
