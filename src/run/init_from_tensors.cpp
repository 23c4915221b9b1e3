#include "run/init_from_tensors.h"

#include <algorithm>

#include "core/abbreviate.h"
#include "core/dtype.h"
#include "model/gpt2_tensors.h"

namespace bamtrain {
namespace {

constexpr const char* kEmbedding = "transformer.wte.weight";
constexpr const char* kHead = "lm_head.weight";

/// Of GPT-2's tensors; a layer without its first norm ends them.
int64_t layers_of(const WeightsFolder& folder) {
  int64_t layers = 0;
  while (folder.tensors().count("transformer.h." + std::to_string(layers) + ".ln_1.weight") != 0) {
    ++layers;
  }
  return layers;
}

/// Part `part` of `t`, which lies in `place`. A tensor that cannot be cut so keeps its own shape,
/// which no parameter has.
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
  if (e.dtype == Dtype::f32) {
    place.file->read(e, values.data());
  } else {
    std::vector<bf16> rounded(values.size());
    place.file->read(e, rounded.data());
    std::transform(rounded.begin(), rounded.end(), values.begin(),
                   [](bf16 x) { return static_cast<float>(x); });
  }
  if (transposed) values = bamtrain::transposed(values, e.shape[0], e.shape[1]);
  const auto n = static_cast<std::ptrdiff_t>(size / parts);
  std::copy_n(values.begin() + part * n, n, out);
}

SourceTensors::SourceTensors(const std::string& folder) : folder_(WeightsFolder::open(folder)) {
  std::map<std::string, WeightsFolder::Place> rest = folder_.tensors();
  if (rest.count(kEmbedding) != 0) {
    for (const Gpt2Tensor& t : gpt2_tensors(layers_of(folder_), rest.count(kHead) == 0)) {
      const auto found = rest.find(t.name);
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
