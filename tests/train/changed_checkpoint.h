#pragma once
// Checkpoints whose weights a test has chosen.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace bamtrain::testing {

/// The checkpoint's copy, in a new folder, in which every element of `tensor` is `value`.
inline std::string with_constant(const std::string& checkpoint, const std::string& folder,
                                 const std::string& tensor, float value) {
  const Checkpoint original = open_checkpoint(checkpoint);
  CheckpointContents contents;
  contents.state = original.state;
  std::vector<std::vector<char>> memory;
  const auto copy = [&](const std::string& path, std::vector<NamedTensor>* to) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const SafetensorsFile::Entry& e : file.tensors()) {
      memory.emplace_back(static_cast<size_t>(e.bytes));
      file.read(e, memory.back().data());
      if (e.name == tensor) {
        float* const values = reinterpret_cast<float*>(memory.back().data());
        std::fill_n(values, memory.back().size() / sizeof(float), value);
      }
      to->push_back({e.name, e.dtype, e.shape, memory.back().data()});
    }
  };
  copy(original.model_file(), &contents.model);
  copy(original.optimizer_file(), &contents.optimizer);
  std::filesystem::create_directory(folder);
  save_checkpoint(folder, original.step, contents, [](const std::string&) {});
  return folder + "/" + checkpoint_name(original.step);
}

}  // namespace bamtrain::testing
