#pragma once
// The weights of a model in Hugging Face's folder layout: model.safetensors, or shards
// model-00001-of-00003.safetensors and so on with model.safetensors.index.json, which maps each
// tensor to its file:
//
//   {"metadata": {"total_size": <bytes of all tensors>}, "weight_map": {"<tensor>": "<file>"}}
//
// Each tensor's SHA-256 is in the metadata of its file (safetensors.h), so a folder can be verified
// wherever it is copied. Folders from other programs have no digests and are read unverified.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace bamtrain {

/// Writes `tensors` durably into `folder`: one file if they have at most `max_shard_bytes`, else
/// shards and the index. Tensors keep the given order; a shard ends before the tensor that would
/// exceed the limit, and a tensor larger than the limit has its own shard. Throws Error
/// (ExitCode::io). REQUIRES: as write_safetensors, max_shard_bytes >= 1.
void write_weights(const std::string& folder, const std::vector<NamedTensor>& tensors,
                   int64_t max_shard_bytes);

/// Such a folder open for reading. Opening checks the headers of all files, and that each tensor of
/// the index is in its file and no file has other tensors.
class WeightsFolder {
 public:
  /// The location of a tensor.
  struct Place {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
  };

  /// Throws Error (ExitCode::checkpoint) naming the file if neither or both of the two forms exist,
  /// a file is damaged, or the index names a file outside the folder.
  static WeightsFolder open(const std::string& folder);

  const std::map<std::string, Place>& tensors() const { return tensors_; }  // by name
  /// Base names of the files that hold tensors.
  const std::vector<std::string>& files() const { return names_; }

 private:
  WeightsFolder() = default;

  std::vector<std::string> names_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> tensors_;
};

}  // namespace bamtrain
