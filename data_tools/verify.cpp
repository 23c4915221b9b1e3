#include "data_tools/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "data/shard.h"
#include "data/tokenizer.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTokensAtOnce = int64_t{1} << 20;

/// Throws an Error for the first thing that is not as `entry` says.
void verify_shard(const std::string& path, const Manifest& manifest,
                  const Manifest::ShardEntry& entry) {
  const auto expect = [&](bool holds, const std::string& expected, const std::string& found) {
    if (!holds) throw Error(ExitCode::data, path, expected + " as in the manifest", found, "");
  };
  const Shard shard = Shard::open(path);
  expect(shard.tokens() == entry.tokens, std::to_string(entry.tokens) + " tokens",
         std::to_string(shard.tokens()));
  std::vector<int32_t> ids(static_cast<size_t>(std::min(kTokensAtOnce, shard.tokens())));
  for (int64_t at = 0; at < shard.tokens(); at += kTokensAtOnce) {
    const int64_t n = std::min(kTokensAtOnce, shard.tokens() - at);
    shard.read(at, n, ids.data(), manifest.vocab);
  }
  const std::string hash = sha256_file(path);
  expect(hash == entry.sha256, "SHA-256 " + entry.sha256, hash);
  if (!manifest.document_start) return;
  int64_t documents = 0;
  shard.find_all(0, *manifest.document_start, [&](int64_t) { ++documents; });
  expect(documents == entry.documents, std::to_string(entry.documents) + " documents",
         std::to_string(documents));
}

class Verification {
 public:
  explicit Verification(std::FILE* out) : out_(out) {}

  void check_set(const std::string& folder, const Tokenizer* tokenizer) {
    const std::string path = (fs::path(folder) / kManifestName).string();
    std::error_code code;
    if (!fs::exists(path, code)) {
      throw Error(ExitCode::data, folder, "a folder with " + std::string(kManifestName), "none",
                  "look at shards without a manifest by `bamdata inspect`");
    }
    const Manifest manifest = read_manifest(path);
    if (manifest.format == 1) {
      fmt::print(out_,
                 "note {}: format 1, without a digest of itself: the tokenizer's hash, vocabulary "
                 "and ids that it names could not be checked\n",
                 path);
    }
    if (tokenizer && tokenizer->sha256() != manifest.tokenizer_sha256) {
      report_bad(path + ": expected the given tokenizer, SHA-256 " + tokenizer->sha256() +
                 ", found " + manifest.tokenizer_sha256);
    }
    std::set<std::string> listed;
    for (const Manifest::ShardEntry& entry : manifest.shards) {
      listed.insert(entry.file);
      const std::string shard = (fs::path(folder) / entry.file).string();
      try {
        verify_shard(shard, manifest, entry);
        fmt::print(out_, "ok   {}: {}, {}\n", shard, counted(entry.tokens, "token"),
                   counted(entry.documents, "document"));
      } catch (const Error& e) {
        report_bad(e.what());
      }
      std::fflush(out_);
    }
    std::vector<std::string> others;
    for (const auto& file : fs::directory_iterator(folder, code)) {
      const std::string name = file.path().filename().string();
      if (name.ends_with(".bin") && !listed.contains(name)) others.push_back(file.path().string());
    }
    std::sort(others.begin(), others.end());
    for (const std::string& file : others) report_bad(file + ": not in the manifest");
  }

  int64_t bad() const { return bad_; }

 private:
  void report_bad(const std::string& what) {
    fmt::print(out_, "BAD  {}\n", what);
    ++bad_;
  }

  std::FILE* out_;
  int64_t bad_ = 0;
};

}  // namespace

void verify(const std::string& path, const std::string& tokenizer, std::FILE* out) {
  std::optional<Tokenizer> given;
  if (!tokenizer.empty()) given = Tokenizer::open(tokenizer);
  Verification verification(out);
  for (const std::string& folder : shard_sources(path)) {
    verification.check_set(folder, given ? &*given : nullptr);
  }
  if (verification.bad() > 0) {
    throw Error(ExitCode::data, path, "shards as their manifest describes them",
                std::to_string(verification.bad()) +
                    (verification.bad() == 1 ? " that is not" : " that are not"),
                "fetch or make the set again");
  }
}

}  // namespace bamtrain
