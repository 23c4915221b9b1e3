#include "model/mechanism_part.h"

#include <algorithm>

#include "core/element.h"

namespace bamtrain {

void LayerParameters::add(const PartSource& from, int64_t layer, const MechanismParameters& list,
                          const char* kind) {
  layers_.resize(static_cast<size_t>(from.config.layers));
  for (const MechanismParameter& p : list) {
    if (p.gate) continue;
    const Parameter* const found = from.layout.find(mechanism_parameter_name(p, kind, layer));
    require(found != nullptr, "a mechanism's parameter in the layout");
    layers_[static_cast<size_t>(layer)].push_back(found);
  }
}

int64_t LayerParameters::largest() const {
  int64_t most = 0;
  for (const auto& layer : layers_) {
    for (const Parameter* p : layer) most = std::max(most, p->size);
  }
  return most;
}

std::span<const Tensor> LayerParameters::theta(int64_t layer, const Tensor& master_weights) {
  theta_.clear();
  for (const Parameter* p : of_layer(layer)) theta_.push_back(view_of(master_weights, p));
  return theta_;
}

std::span<const Tensor> LayerParameters::dtheta(int64_t layer, const Tensor& gradients) {
  dtheta_.clear();
  for (const Parameter* p : of_layer(layer)) {
    dtheta_.push_back(p->trained ? view_of(gradients, p) : Tensor());
  }
  return dtheta_;
}

void upload_table(Backend& backend, const Tensor& dst,
                  const std::function<double(int64_t, int64_t)>& f) {
  std::vector<char> bytes(static_cast<size_t>(dst.bytes()));
  const Tensor host(bytes.data(), dst.dtype, {dst.shape[0], dst.shape[1]});
  for (int64_t i = 0; i < dst.size(); ++i) put(host, i, f(i / dst.shape[1], i % dst.shape[1]));
  backend.upload(dst, host.data);
}

Tensor rows_of(const Tensor& planned, int64_t B, int64_t H, int64_t T) {
  return planned ? Tensor(planned.data, planned.dtype, {B, H, T}) : Tensor();
}

}  // namespace bamtrain
