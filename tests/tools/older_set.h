#pragma once
// Sets of shards as programs wrote them before the tokenizer's file went along.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/sha256.h"
#include "data/files.h"

namespace bamtrain::testing {

/// Rewrites the manifest of a set in format 2 or 1, and removes the tokenizer's file.
inline void make_older(const std::string& set, int format = 2) {
  const std::string path = set + "/manifest.json";
  auto m = nlohmann::ordered_json::parse(read_bytes(path));
  std::filesystem::remove(set + "/" + m["tokenizer"]["file"].get<std::string>());
  m["tokenizer"].erase("file");
  m["format"] = format;
  m.erase("digest");
  if (format > 1) m["digest"] = sha256_hex(m.dump());
  write_bytes(path, m.dump(2) + "\n");
}

}  // namespace bamtrain::testing
