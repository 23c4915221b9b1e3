#pragma once
// The weights of a model as Hugging Face's folders hold them: model.safetensors, or shards
// model-00001-of-00003.safetensors and so on with model.safetensors.index.json, which says where
// each tensor is:
//
//   {"metadata": {"total_size": <bytes of all tensors>}, "weight_map": {"<tensor>": "<file>"}}
//
// Each tensor's SHA-256 is in the metadata of its file (safetensors.h), so that a folder can be
// checked wherever it was carried. Folders of others have none and are read without.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace bamtrain {

/// Writes `tensors` durably into `folder`: one file where they hold at most `max_shard_bytes`, else
/// shards in the order given, each full but for what does not fit any more (a tensor that is larger
/// has one of its own), and the index. Error (ExitCode::io). REQUIRES: as write_safetensors,
/// max_shard_bytes >= 1.
void write_weights(const std::string& folder, const std::vector<NamedTensor>& tensors,
                   int64_t max_shard_bytes);

/// Such a folder open for reading. Its files' headers are all checked when it is opened, and that
/// each tensor of the index is in its file and no other tensor in any.
class WeightsFolder {
 public:
  /// Where a tensor is.
  struct Place {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
  };

  /// Error (ExitCode::checkpoint) naming the file: none or both of the two forms, damaged, or an
  /// index that names a file outside the folder.
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
