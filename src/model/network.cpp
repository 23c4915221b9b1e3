#include "model/network.h"

#include <algorithm>

#include "model/max_retrieval.h"
#include "model/model.h"

namespace bamtrain {

int64_t evaluation_batch(int64_t length) { return std::max<int64_t>(1, 8192 / length); }

int64_t graph_key(int64_t buffer, int64_t T, int part) {
  constexpr int kLengthBits = 32, kPartBits = 8, kBufferBits = 16;
  require(buffer < int64_t{1} << kBufferBits && T < int64_t{1} << kLengthBits &&
              part + 1 < 1 << kPartBits,
          "few buffers and parts");
  return (buffer << kPartBits | (part + 1)) << kLengthBits | T;
}

std::unique_ptr<Network> make_network(const ModelConfig& config, int64_t training_length,
                                      Backend& backend, Dtype activations) {
  if (config.kind == ModelKind::max_retrieval) {
    return std::make_unique<MaxRetrieval>(config, training_length, backend, activations);
  }
  return std::make_unique<Model>(config, training_length, backend, activations);
}

}  // namespace bamtrain
