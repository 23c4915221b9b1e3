#include "run/init_from_tensors.h"

#include <algorithm>

#include "core/abbreviate.h"
#include "core/dtype.h"
#include "model/gpt2_tensors.h"

namespace bamtrain {
namespace {

using SourcePlaces = std::map<std::string, WeightsFolder::Place>;

constexpr const char* kHead = "lm_head.weight";
const std::string kGpt2Prefix = "transformer.";

/// Number of GPT-2 layers; the first layer without its first norm ends them.
int64_t layers_of(const SourcePlaces& tensors, const std::string& prefix) {
  int64_t layers = 0;
  while (tensors.count(prefix + "h." + std::to_string(layers) + ".ln_1.weight") != 0) ++layers;
  return layers;
}

/// For GPT-2: the mask's buffer, not a linear layer's bias ("attn.c_attn.bias").
bool is_buffer(const std::string& name, bool gpt2) {
  if (!gpt2) return name.ends_with("rotary_emb.inv_freq");
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// Part `part` of `t`, which is stored in `place`. A tensor that cannot be split keeps its own
/// shape, which no parameter has.
SourceTensor part_of(const Gpt2Tensor& t, size_t part, const WeightsFolder::Place& place) {
  std::vector<int64_t> shape = place.entry->shape;
  const auto parts = static_cast<int64_t>(t.parts.size());
  const size_t outputs = t.transposed ? 1 : 0;
  const bool fits = shape.size() > outputs && shape[outputs] % parts == 0;
  if (!fits || (t.transposed && shape.size() != 2)) return {place, shape};
  shape[outputs] /= parts;
  if (t.transposed) std::swap(shape[0], shape[1]);
  return {place, shape, static_cast<int64_t>(part), parts, t.transposed};
}

}  // namespace

std::string SourceTensor::where() const {
  return place.file->path() + ": tensor \"" + abbreviate(place.entry->name, 200) + "\"";
}

void SourceTensor::read(float* out) const {
  const SafetensorsFile::Entry& e = *place.entry;
  int64_t size = 1;
  for (const int64_t dim : e.shape) size *= dim;
  std::vector<float> values(static_cast<size_t>(size));
  const auto read_as = [&](auto element) {
    std::vector<decltype(element)> stored(values.size());
    place.file->read(e, stored.data());
    std::transform(stored.begin(), stored.end(), values.begin(),
                   [](auto x) { return static_cast<float>(x); });
  };
  if (e.dtype == Dtype::f32) {
    place.file->read(e, values.data());
  } else if (e.dtype == Dtype::bf16) {
    read_as(bf16());
  } else {
    read_as(f16());
  }
  if (transposed) values = bamtrain::transposed(values, e.shape[0], e.shape[1]);
  const auto n = static_cast<std::ptrdiff_t>(size / parts);
  std::copy_n(values.begin() + part * n, n, out);
}

std::vector<float> SourceTensor::values() const {
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  std::vector<float> out(static_cast<size_t>(size));
  read(out.data());
  return out;
}

SourceTensors::SourceTensors(const std::string& folder, bool gpt2)
    : folder_(WeightsFolder::open(folder)), stored_(folder_.tensors()) {
  std::erase_if(stored_, [gpt2](const auto& tensor) { return is_buffer(tensor.first, gpt2); });
  SourcePlaces rest = stored_;
  if (gpt2) {
    const std::string prefix = rest.count("wte.weight") != 0 ? "" : kGpt2Prefix;
    for (const Gpt2Tensor& t : gpt2_tensors(layers_of(rest, prefix), rest.count(kHead) == 0)) {
      const bool prefixed = t.name.starts_with(kGpt2Prefix);
      const auto found = rest.find(prefixed ? prefix + t.name.substr(kGpt2Prefix.size()) : t.name);
      if (found == rest.end()) continue;
      for (size_t i = 0; i < t.parts.size(); ++i) {
        tensors_.emplace(t.parts[i], part_of(t, i, found->second));
      }
      rest.erase(found);
    }
  }
  for (const auto& [name, place] : rest) {
    tensors_.emplace(name, SourceTensor{place, place.entry->shape});
  }
}

}  // namespace bamtrain
