// Weights: a whole file ("f"), the header of a file with 64 bytes of tensors ("h"), or the index of
// a folder with one valid shard ("i").

#include "checkpoint/safetensors.h"

#include <vector>

#include "checkpoint/weights_folder.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

namespace {

std::string with_header(const std::string& header) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(64, '\1');
}

/// Checks that every tensor is inside the file, and reads it.
void read_all(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  for (const SafetensorsFile::Entry& entry : file.tensors()) {
    require(entry.bytes >= 0 && entry.offset >= 0 && entry.bytes <= bytes - entry.offset,
            "a tensor within its file");
    std::vector<char> tensor(static_cast<size_t>(entry.bytes));
    file.read(entry, tensor.data());
    require(file.find(entry.name) == &entry, "one tensor of a name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder, sharded;
  const Input in(data, size);
  if (in.kind != 'i') {
    const std::string bytes = in.kind == 'h' ? with_header(in.rest) : in.rest;
    const std::string path = folder.write("model.safetensors", bytes);
    accepts([&] { read_all(path); });
    accepts([&] { WeightsFolder::open(folder.path()); });
    return 0;
  }
  sharded.write("model-00001-of-00001.safetensors",
                with_header(R"({"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]},)"
                            R"("b":{"dtype":"F32","shape":[2,4],"data_offsets":[32,64]}})"));
  sharded.write("model.safetensors.index.json", in.rest);
  accepts([&] { WeightsFolder::open(sharded.path()); });
  return 0;
}
