#pragma once
// Checkpoints with weights that a test chooses.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace bamtrain::testing {

/// Copies the checkpoint to a new folder after calling `change(name, values, count)` on each
/// tensor, including those of the optimizer.
inline std::string with_changes(
    const std::string& checkpoint, const std::string& folder,
    const std::function<void(const std::string&, float*, size_t)>& change) {
  const Checkpoint original = open_checkpoint(checkpoint);
  CheckpointContents contents;
  contents.state = original.state;
  std::vector<std::vector<char>> memory;
  const auto copy = [&](const std::string& path, std::vector<NamedTensor>* to) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const SafetensorsFile::Entry& e : file.tensors()) {
      memory.emplace_back(static_cast<size_t>(e.bytes));
      file.read(e, memory.back().data());
      change(e.name, reinterpret_cast<float*>(memory.back().data()),
             memory.back().size() / sizeof(float));
      to->push_back({e.name, e.dtype, e.shape, memory.back().data()});
    }
  };
  copy(original.model_file(), &contents.model);
  copy(original.optimizer_file(), &contents.optimizer);
  std::filesystem::create_directory(folder);
  save_checkpoint(folder, original.step, contents, [](const std::string&) {});
  return folder + "/" + checkpoint_name(original.step);
}

/// The same, with every element of `tensor` set to `value`.
inline std::string with_constant(const std::string& checkpoint, const std::string& folder,
                                 const std::string& tensor, float value) {
  return with_changes(checkpoint, folder,
                      [&](const std::string& name, float* values, size_t count) {
                        if (name == tensor) std::fill_n(values, count, value);
                      });
}

}  // namespace bamtrain::testing
