#include "model/network.h"

#include <algorithm>

#include "model/max_retrieval.h"
#include "model/model.h"

namespace bamtrain {

int64_t evaluation_batch(int64_t length) { return std::max<int64_t>(1, 8192 / length); }

/// Buffers of gradients have 256 bytes at least, below address 2^47.
int64_t graph_key(const void* memory, int64_t T, int part) {
  constexpr int kLengthBits = 22, kPartBits = 3;
  require(T < int64_t{1} << kLengthBits && part + 1 < 1 << kPartBits,
          "sequences of fewer than 2^22 tokens, and fewer than 7 parts");
  const uint64_t address = reinterpret_cast<uintptr_t>(memory) >> 8;
  const auto of_part = address << kPartBits | static_cast<uint64_t>(part + 1);
  return static_cast<int64_t>(of_part << kLengthBits | static_cast<uint64_t>(T));
}

std::unique_ptr<Network> make_network(const ModelConfig& config, int64_t training_length,
                                      Backend& backend, Dtype activations) {
  if (config.kind == ModelKind::max_retrieval) {
    return std::make_unique<MaxRetrieval>(config, training_length, backend, activations);
  }
  return std::make_unique<Model>(config, training_length, backend, activations);
}

}  // namespace bamtrain
