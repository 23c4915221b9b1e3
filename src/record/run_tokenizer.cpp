#include "record/run_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "data/tokenizer_file.h"
#include "record/run_text.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// Whether a run writes or reads a file or folder of this name in out_dir (docs/formats.md).
bool is_run_entry(const std::string& name) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "metrics.jsonl",   "samples.jsonl", "results.json",
      "perplexity.json", "report.html",   "starts.json",
      "config.json",     "tensorboard",   "stop"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         name.starts_with("checkpoint-") || name.starts_with('.');
}

}  // namespace

void keep_tokenizer(const RunConfig& c, const std::string& sha256, const Warn& warn) {
  std::string found;
  try {
    found = tokenizer_path({"--tokenizer", "", sha256, c.out_dir}, c);
  } catch (const Error& e) {
    if (e.code() != ExitCode::data) throw;
    warn(e.as(e.code(), "tokenizer",
              "put it in " + c.out_dir + ", or give it to generate, eval, inspect and export")
             .what());
    return;
  }
  std::error_code ignored;
  if (fs::equivalent(fs::path(found).parent_path(), c.out_dir, ignored)) return;
  // Its SHA-256 finds it again under any name.
  const bool taken = is_run_entry(fs::path(found).filename().string());
  TokenizerFile(found, sha256).write(c.out_dir, taken ? "tokenizer-" : "");
}

}  // namespace bamtrain
