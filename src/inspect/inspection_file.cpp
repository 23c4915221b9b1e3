#include "inspect/inspection_file.h"

#include <deque>
#include <limits>
#include <optional>

#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "inspect/scale_fit.h"

namespace bamtrain {

namespace {

constexpr const char* kMadeBy = "bamtrain inspect";

/// Tensors, and the memory that they need in addition to the inspection's own.
class Tensors {
 public:
  void add(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    put(name, Dtype::f32, std::move(shape), values.data(), values.size());
  }
  void add(const std::string& name, std::vector<int64_t> shape, const std::vector<double>& values) {
    if (values.empty()) return;
    const std::vector<float>& own = floats_.emplace_back(values.begin(), values.end());
    add(name, std::move(shape), own);
  }
  void add(const std::string& name, const std::vector<int64_t>& values) {
    const std::vector<int32_t>& own = integers_.emplace_back(values.begin(), values.end());
    put(name, Dtype::i32, {std::ssize(own)}, own.data(), own.size());
  }
  const std::vector<NamedTensor>& all() const { return tensors_; }

 private:
  void put(const std::string& name, Dtype dtype, std::vector<int64_t> shape, const void* data,
           size_t size) {
    if (size == 0) return;
    int64_t elements = 1;
    for (const int64_t n : shape) elements *= n;
    require(elements == static_cast<int64_t>(size), "values for the whole of a tensor");
    tensors_.push_back({name, dtype, std::move(shape), const_cast<void*>(data)});
  }

  std::vector<NamedTensor> tensors_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int32_t>> integers_;
};

constexpr struct {
  const char* name;
  std::vector<float> AttentionValues::*values;
} kValues[] = {{"scores", &AttentionValues::scores},
               {"prior_bias", &AttentionValues::prior},
               {"bias", &AttentionValues::bias},
               {"logits", &AttentionValues::logits},
               {"weights", &AttentionValues::weights}};

void add_layer(Tensors& to, const LayerView& view) {
  const std::string layer = "layers." + std::to_string(view.layer) + ".";
  const int64_t H = view.H, T = view.T, side = view.map.side;
  for (const auto& v : kValues) {
    to.add(layer + v.name, {H, side, side}, view.maps.*v.values);
    to.add(layer + "last." + v.name, {H, T}, view.last.*v.values);
  }
  to.add(layer + "entropy", {H, T}, view.entropy);
  to.add(layer + "support", {H, T}, view.nonzero_keys);
  to.add(layer + "centroid", {H, T}, view.centroid);
  to.add(layer + "largest", {H, T}, view.largest);
  to.add(layer + "scale", {H, T}, view.scale);
  to.add(layer + "keys", view.keys);
  for (const GateRows& gate : view.gates) to.add(layer + "gates." + gate.name, {H, T}, gate.values);
  to.add(layer + "reached", {1}, std::vector<double>{view.reached});
  to.add(layer + "log10_paths", {1}, std::vector<double>{view.log10_paths});
  if (view.scale.empty()) return;
  std::vector<double> linear, log, power;
  for (int64_t h = 0; h < H; ++h) {
    const auto begin = view.scale.begin() + h * T;
    const std::optional<ScaleFits> fit = fit_scale(view.keys, {begin, begin + T});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const ScaleFits none = {{nan, nan, nan, nan}, {nan, nan, nan, nan}, {nan, nan, nan, nan}};
    const ScaleFits& f = fit ? *fit : none;
    linear.insert(linear.end(), {f.linear.delta, f.linear.beta, f.linear.r2});
    log.insert(log.end(), {f.log.delta, f.log.beta, f.log.r2});
    power.insert(power.end(), {f.power.delta, f.power.beta, f.power.gamma, f.power.r2});
  }
  to.add(layer + "fit.linear", {H, 3}, linear);
  to.add(layer + "fit.log", {H, 3}, log);
  to.add(layer + "fit.power", {H, 4}, power);
}

}  // namespace

void write_inspection(const std::string& path, const InspectionRequest& request,
                      const Inspection& found, const std::map<std::string, std::string>& facts) {
  const auto T = std::ssize(request.ids), depth = request.config.layers + 1;
  Tensors tensors;
  tensors.add("ids", std::vector<int64_t>(request.ids.begin(), request.ids.end()));
  tensors.add("losses", {T}, found.losses);
  for (const LayerView& view : found.layers) add_layer(tensors, view);
  tensors.add("depth.gradient", {depth}, found.gradient.values);
  tensors.add("depth.token_gradient", {depth, T}, found.token_gradient);
  tensors.add("depth.repeated", {depth}, found.repeated.values);
  for (const CollapseCurve& curve : found.collapse) {
    std::vector<double> points;
    for (const CollapseGap& at : curve.gaps) {
      points.insert(points.end(), {static_cast<double>(at.n), at.gap});
    }
    tensors.add("collapse." + curve.normalizer + "." +
                    (curve.prefix == CollapsePrefix::constant ? "constant" : "random"),
                {std::ssize(curve.gaps), 2}, points);
  }
  std::map<std::string, std::string> metadata = facts;
  metadata["made_by"] = kMadeBy;
  metadata["block"] = std::to_string(MapShape(T).block);
  write_safetensors(path, tensors.all(), metadata);
}

bool is_inspection_file(const std::string& path) {
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto at = file.metadata().find("made_by");
    return at != file.metadata().end() && at->second == kMadeBy;
  } catch (const Error&) {  // not a safetensors file
    return false;
  }
}

}  // namespace bamtrain
