#pragma once
// The Python files of src/export/huggingface, embedded when the program is built: they go with
// every model that transformers' own classes cannot express.

#include <span>
#include <string_view>

namespace bamtrain {

struct PythonFile {
  std::string_view name;  // "modeling_bamtrain.py"
  std::string_view text;
};

std::span<const PythonFile> python_files();

}  // namespace bamtrain
