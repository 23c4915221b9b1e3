#pragma once
// Calls of tokenize() in tests, and what they leave.

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "data_tools/tokenize.h"
#include "tools/support.h"

namespace bamtrain::testing {

namespace fs = std::filesystem;

/// Writes `text` to in.txt in the folder, next to a small tokenizer; the output goes to out/.
inline TokenizeOptions options_for(const TemporaryFolder& folder, const std::string& text,
                                   DocumentKind kind) {
  TokenizeOptions o;
  o.input.paths = {folder.file("in.txt")};
  o.input.kind = kind;
  o.tokenizer = small_tokenizer(folder);
  o.output = folder.file("out");
  write_bytes(o.input.paths[0], text);
  return o;
}

inline TokenizeReport run(const TokenizeOptions& options) {
  return without_log([&](std::FILE* log) { return tokenize(options, log); });
}

/// SHA-256 of every file under a folder, by relative path.
inline std::map<std::string, std::string> hashes(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    found[fs::relative(entry.path(), folder).string()] = sha256_file(entry.path().string());
  }
  return found;
}

/// `count` lines of different lengths; each contains its number.
inline std::string numbered_lines(int count) {
  const std::vector<std::string> sentences = sample_sentences();
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::to_string(i);
    for (int k = 0; k <= i % 7; ++k) {
      text += " " + sentences[static_cast<size_t>(i * 31 + k) % sentences.size()];
    }
    text += "\n";
  }
  return text;
}

}  // namespace bamtrain::testing
