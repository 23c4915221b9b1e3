#include "ops/host_scratch.h"

#include <algorithm>

#include "core/element.h"

namespace bamtrain {

void HostScratch::plan(Arena& arena, const WorkspaceShape& w) {
  arena.add("scratch.table", &table, Dtype::f64, {w.H, w.bidirectional ? 2 * w.T : w.past + w.T});
  arena.add("scratch.by_length", &by_length, Dtype::f64, {w.H, w.past + w.T + 1});
  arena.add("scratch.theta", &theta_, Dtype::f64, {TensorList::kMost, w.mechanism_values});
  arena.add("scratch.dtheta", &dtheta_, Dtype::f64, {TensorList::kMost, w.mechanism_values});
}

HostScratch::Pointers HostScratch::theta_values(std::span<const Tensor> theta) const {
  const Pointers p = zeros(theta_, theta.size());
  for (size_t n = 0; n < theta.size(); ++n) {
    require(theta[n].size() <= theta_.shape[1], "parameters no larger than was planned");
    for (int64_t h = 0; h < theta[n].size(); ++h) p.of[n][h] = get(theta[n], h);
  }
  return p;
}

HostScratch::Pointers HostScratch::zeros(size_t count) const { return zeros(dtheta_, count); }

HostScratch::Pointers HostScratch::zeros(Tensor values, size_t count) const {
  require(values && count <= TensorList::kMost, "a planned backend and at most 8 parameters");
  Pointers p;
  for (size_t n = 0; n < count; ++n) {
    p.of[n] = values.ptr<double>() + static_cast<int64_t>(n) * values.shape[1];
    std::fill_n(p.of[n], values.shape[1], 0.0);
  }
  return p;
}

void HostScratch::add_to(std::span<const Tensor> dtheta, const Pointers& values) const {
  for (size_t n = 0; n < dtheta.size(); ++n) {
    for (int64_t h = 0; h < dtheta[n].size(); ++h) {
      put(dtheta[n], h, get(dtheta[n], h) + values.of[n][h]);
    }
  }
}

}  // namespace bamtrain
