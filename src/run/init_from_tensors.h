#pragma once
// The tensors of a folder that a run begins with, under the names and in the shapes that the
// program's own parameters have. A folder of GPT2LMHeadModel holds some of them in one tensor.

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
  /// SafetensorsFile::read. REQUIRES: dtype f32 or bf16.
  void read(float* out) const;
};

class SourceTensors {
 public:
  /// Errors as WeightsFolder::open.
  explicit SourceTensors(const std::string& folder);

  const std::map<std::string, SourceTensor>& all() const { return tensors_; }  // by name
  /// Base names of the files that hold tensors.
  const std::vector<std::string>& files() const { return folder_.files(); }

 private:
  WeightsFolder folder_;
  std::map<std::string, SourceTensor> tensors_;
};

}  // namespace bamtrain
