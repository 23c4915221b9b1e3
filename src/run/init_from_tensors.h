#pragma once
// The tensors of a folder that a run begins with, under the names and in the shapes that the
// program's own parameters have. A folder of GPT2LMHeadModel holds some of them in one tensor, and
// may leave "transformer." out of names, as the hub's does. Buffers that follow from a model's
// configuration, which old folders have beside their parameters, are left out: masks of GPT-2
// (attn.bias, attn.masked_bias) and frequencies of rope (rotary_emb.inv_freq).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/weights_folder.h"

namespace bamtrain {

/// A tensor of the folder, or a part of one.
struct SourceTensor {
  WeightsFolder::Place place;
  std::vector<int64_t> shape;   // of the part, as a parameter has it
  int64_t part = 0, parts = 1;  // along the outputs
  bool transposed = false;      // in the folder

  /// "FILE: tensor "NAME"", as the folder names it.
  std::string where() const;
  /// Its values as f32, of which there are as many as `shape` says. Error (ExitCode::checkpoint) as
  /// SafetensorsFile::read. REQUIRES: dtype f32, bf16 or f16.
  void read(float* out) const;
  std::vector<float> values() const;
};

class SourceTensors {
 public:
  /// `gpt2`: whether the folder has GPT-2's names. Errors as WeightsFolder::open.
  SourceTensors(const std::string& folder, bool gpt2);

  const std::map<std::string, SourceTensor>& all() const { return tensors_; }  // by name
  /// Those of the folder by its own names.
  const std::map<std::string, WeightsFolder::Place>& stored() const { return stored_; }
  /// Base names of the files that hold tensors.
  const std::vector<std::string>& files() const { return folder_.files(); }

 private:
  WeightsFolder folder_;
  std::map<std::string, WeightsFolder::Place> stored_;
  std::map<std::string, SourceTensor> tensors_;
};

}  // namespace bamtrain
