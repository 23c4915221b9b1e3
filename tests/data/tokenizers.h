#pragma once
// The tokenizers in tests/data/tokenizers, and helpers for tests of every kind of tokenizer.

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/files.h"
#include "data/tokenizer.h"

namespace bamtrain::testing {

inline std::string golden_path(const std::string& name) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  return std::string(source ? source : ".") + "/tests/data/tokenizers/" + name;
}

/// A file that scripts/tokenizer_golden.py wrote there.
inline nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(read_bytes(golden_path(name)));
}

inline std::vector<int32_t> encode_cached(const Tokenizer& tokenizer, const std::string& text,
                                          Tokenizer::Cache* cache) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, cache, &ids);
  return ids;
}

/// The concatenated bytes that the ids add to a text.
inline std::string bytes_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) bytes += tokenizer.bytes(ids[i], i == 0);
  return bytes;
}

}  // namespace bamtrain::testing
