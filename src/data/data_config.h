#pragma once
// What is trained on: a plain struct, filled by src/config and by tests.

#include <cstdint>
#include <optional>
#include <string>

namespace bamtrain {

struct DataConfig {
  std::string train;                      // a folder of *.bin shards, or a glob
  std::string val;                        // likewise; empty: no validation
  int64_t sequence_length = 0;            // T
  std::optional<int64_t> document_start;  // token id that begins a document; default: manifest
  bool shuffle = true;                    // windows permuted per (seed, epoch), or in file order
};

}  // namespace bamtrain
