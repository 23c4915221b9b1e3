#pragma once
// A small checkpoint whose every number identifies the tag it was made with.

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace bamtrain {

class Sample {
 public:
  explicit Sample(int32_t tag) : tag_(tag) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] = static_cast<float>(tag) + static_cast<float>(i) / 16;
      moments_[i] = tag - static_cast<double>(i) / 1024;
    }
    count_[0] = tag;
  }

  /// The result points into this sample.
  CheckpointContents contents() & {
    CheckpointContents c;
    c.model = model();
    c.optimizer = optimizer();
    c.state = {{"tag", tag_}, {"nested", {{"large", 18446744073709551615u}}}};
    return c;
  }
  std::vector<NamedTensor> model() & {
    return {{"model.embed_tokens.weight", Dtype::f32, {3, 4}, weights_.data()},
            {"model.layers.0.self_attn.prior.theta_alpha", Dtype::f32, {2}, weights_.data() + 12}};
  }
  std::vector<NamedTensor> optimizer() & {
    return {{"m.model.embed_tokens.weight", Dtype::f64, {3, 4}, moments_.data()},
            {"count", Dtype::i32, {1}, count_.data()}};
  }

  bool operator==(const Sample&) const = default;

 private:
  int32_t tag_;
  std::vector<float> weights_ = std::vector<float>(14);
  std::vector<double> moments_ = std::vector<double>(14);
  std::vector<int32_t> count_ = std::vector<int32_t>(1);
};

/// Whether the state, model and optimizer of `checkpoint` all equal those of Sample(tag).
inline bool holds(const Checkpoint& checkpoint, int32_t tag) {
  Sample expected(tag);
  Sample found(tag);
  const std::vector<NamedTensor> model = found.model(), optimizer = found.optimizer();
  static_cast<float*>(model[0].data)[0] = -1;
  read_tensors(SafetensorsFile::open(checkpoint.model_file()), model);
  read_tensors(SafetensorsFile::open(checkpoint.optimizer_file()), optimizer);
  return checkpoint.state.at("tag") == tag && found == expected;
}

/// For callers that expect no warning.
inline void no_warning(const std::string& text) {
  throw Error(ExitCode::internal, "test", "no warning", text, "");
}

}  // namespace bamtrain
