// Tensors in folders of other programs, read with the program's own names and shapes.

#include "run/init_from_tensors.h"

#include <bit>
#include <cmath>

#include "catch.h"
#include "core/dtype.h"
#include "data/files.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Tensors in memory, to be written.
class Tensors {
 public:
  /// Values are consecutive, starting with `first`.
  void add(const std::string& name, const std::vector<int64_t>& shape, float first) {
    std::vector<float> values(static_cast<size_t>(size_of_shape(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
    add_bytes(name, Dtype::f32, shape, values.data(), 4);
  }
  void add_bytes(const std::string& name, Dtype dtype, const std::vector<int64_t>& shape,
                 const void* data, size_t element) {
    const char* const bytes = static_cast<const char*>(data);
    const auto count = static_cast<size_t>(size_of_shape(shape)) * element;
    memory_.emplace_back(bytes, bytes + count);
    tensors_.push_back({name, dtype, shape, memory_.back().data()});
  }
  void write(const std::string& folder) const { write_weights(folder, tensors_, 1 << 30); }

 private:
  static int64_t size_of_shape(const std::vector<int64_t>& shape) {
    int64_t size = 1;
    for (const int64_t dim : shape) size *= dim;
    return size;
  }
  std::vector<std::vector<char>> memory_;
  std::vector<NamedTensor> tensors_;
};

/// A GPT-2 of one layer and width 2, with the names of GPT2Model ("") or GPT2LMHeadModel
/// ("transformer.").
Tensors gpt2_of(const std::string& prefix) {
  Tensors t;
  t.add(prefix + "wte.weight", {5, 2}, 0);
  t.add(prefix + "wpe.weight", {3, 2}, 100);
  const std::string layer = prefix + "h.0.";
  for (const char* norm : {"ln_1", "ln_2"}) {
    t.add(layer + norm + ".weight", {2}, 200);
    t.add(layer + norm + ".bias", {2}, 300);
  }
  t.add(layer + "attn.c_attn.weight", {2, 6}, 400);
  t.add(layer + "attn.c_attn.bias", {6}, 500);
  t.add(layer + "attn.c_proj.weight", {2, 2}, 600);
  t.add(layer + "attn.c_proj.bias", {2}, 700);
  t.add(layer + "mlp.c_fc.weight", {2, 8}, 800);
  t.add(layer + "mlp.c_fc.bias", {8}, 900);
  t.add(layer + "mlp.c_proj.weight", {8, 2}, 1000);
  t.add(layer + "mlp.c_proj.bias", {2}, 1100);
  t.add(prefix + "ln_f.weight", {2}, 1200);
  t.add(prefix + "ln_f.bias", {2}, 1300);
  return t;
}

std::map<std::string, std::vector<float>> values_in(const std::string& folder, bool gpt2) {
  std::map<std::string, std::vector<float>> out;
  const SourceTensors source(folder, gpt2);
  for (const auto& [name, tensor] : source.all()) out[name] = tensor.values();
  return out;
}

}  // namespace

TEST_CASE("GPT-2 is the same with and without transformer. and the buffers of its masks") {
  const Workplace w;
  gpt2_of("transformer.").write(w.path("."));
  const auto expected = values_in(w.path("."), true);
  CHECK(expected.size() == 20);
  // (inputs, outputs) (2, 6) split in three: keys are outputs 2 and 3.
  CHECK(expected.at("model.layers.0.self_attn.k_proj.weight") ==
        std::vector<float>{402, 408, 403, 409});
  for (const std::string prefix : {"", "transformer."}) {
    const Workplace other;
    Tensors t = gpt2_of(prefix);
    t.add(prefix + "h.0.attn.bias", {1, 1, 3, 3}, 0);
    const std::vector<uint8_t> mask(9, 1);
    t.add_bytes(prefix + "h.1.attn.bias", Dtype::u8, {1, 1, 3, 3}, mask.data(), 1);
    t.add(prefix + "h.0.attn.masked_bias", {}, -10000);
    t.write(other.path("."));
    CHECK(values_in(other.path("."), true) == expected);
  }
}

TEST_CASE("what is no GPT-2 keeps its names, without the frequencies of its rope") {
  const Workplace w;
  Tensors t;
  t.add("model.layers.0.self_attn.rotary_emb.inv_freq", {4}, 1);
  t.add("model.rotary_emb.inv_freq", {4}, 1);
  t.add("transformer.wte.weight", {2, 2}, 0);
  t.add("model.norm.weight", {2}, 7);
  t.write(w.path("."));
  const auto found = values_in(w.path("."), false);
  CHECK(found.size() == 2);
  CHECK(found.at("model.norm.weight") == std::vector<float>{7, 8});
  CHECK(found.count("transformer.wte.weight") == 1);
}

TEST_CASE("half precision is read as the values that it holds") {
  // By the definition: sign, exponent with offset 15, mantissa of 10 bits, subnormals below.
  std::vector<uint16_t> bits;
  std::vector<float> values;
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const int exponent = static_cast<int>(b >> 10 & 31), mantissa = static_cast<int>(b & 1023);
    if (exponent == 31) continue;  // infinite or NaN
    const double size =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    bits.push_back(static_cast<uint16_t>(b));
    values.push_back(static_cast<float>(b >> 15 ? -size : size));
  }
  REQUIRE(bits.size() == 2 * 31 * 1024);
  const Workplace w;
  Tensors t;
  t.add_bytes("model.norm.weight", Dtype::f16, {static_cast<int64_t>(bits.size())}, bits.data(), 2);
  t.write(w.path("."));
  const auto found = values_in(w.path("."), false).at("model.norm.weight");
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    wrong += std::bit_cast<uint32_t>(found[i]) != std::bit_cast<uint32_t>(values[i]);
  }
  CHECK(wrong == 0);
  f16 special;
  special.bits = 0xFC00;
  CHECK(static_cast<float>(special) == -INFINITY);
  special.bits = 0x7E00;
  CHECK(std::isnan(static_cast<float>(special)));
}
