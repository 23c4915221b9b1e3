#pragma once
// The tensors of the folder that a run begins with, under the names and in the shapes of the
// program's own parameters. A folder of GPT2LMHeadModel stores several of them in one tensor, and
// may omit "transformer." in names, as the hub's does. Buffers that follow from a model's
// configuration, which old folders store next to their parameters, are left out. These are GPT-2's
// masks (attn.bias, attn.masked_bias) and rope's frequencies (rotary_emb.inv_freq).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/weights_folder.h"

namespace bamtrain {

/// A tensor of the folder, or a part of it.
struct SourceTensor {
  WeightsFolder::Place place;
  std::vector<int64_t> shape;   // of the part, in the shape of a parameter
  int64_t part = 0, parts = 1;  // along the output dimension
  bool transposed = false;      // in the folder

  /// "FILE: tensor "NAME"", with the folder's name.
  std::string where() const;
  /// Its values as f32, as many as `shape` says. Throws Error (ExitCode::checkpoint) as
  /// SafetensorsFile::read. REQUIRES: dtype f32, bf16 or f16.
  void read(float* out) const;
  std::vector<float> values() const;
};

class SourceTensors {
 public:
  /// `gpt2`: whether the folder has GPT-2's names. Throws Error as WeightsFolder::open.
  SourceTensors(const std::string& folder, bool gpt2);

  const std::map<std::string, SourceTensor>& all() const { return tensors_; }  // by name
  /// The folder's tensors by its own names.
  const std::map<std::string, WeightsFolder::Place>& stored() const { return stored_; }
  /// Base names of the files that hold tensors.
  const std::vector<std::string>& files() const { return folder_.files(); }

 private:
  WeightsFolder folder_;
  std::map<std::string, WeightsFolder::Place> stored_;
  std::map<std::string, SourceTensor> tensors_;
};

}  // namespace bamtrain
