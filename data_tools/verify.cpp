#include "data_tools/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "data/manifest.h"
#include "data/shard.h"
#include "data/shard_set.h"
#include "data/tokenizer.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// Throws Error for the first mismatch with `entry`.
void verify_shard(const std::string& path, const Manifest& manifest,
                  const Manifest::ShardEntry& entry) {
  const auto expect = [&](bool holds, const std::string& expected, const std::string& found) {
    if (!holds) throw Error(ExitCode::data, path, expected + ", as in the manifest", found, "");
  };
  const Shard shard = Shard::open(path);
  expect(shard.tokens() == entry.tokens, std::to_string(entry.tokens) + " tokens",
         std::to_string(shard.tokens()));
  const ShardContents found = shard.contents(manifest.vocab, manifest.document_start);
  expect(found.sha256 == entry.sha256, "SHA-256 " + entry.sha256, found.sha256);
  if (!manifest.document_start) return;
  expect(found.documents == entry.documents, std::to_string(entry.documents) + " documents",
         std::to_string(found.documents));
}

/// Verdicts on all shards, computed by several threads and returned in the order of `entries`.
class ShardChecks {
 public:
  ShardChecks(const std::string& folder, const Manifest& manifest, int threads)
      : folder_(folder), manifest_(manifest), verdicts_(manifest.shards.size()) {
    for (size_t i = 0; i < verdicts_.size(); ++i) results_.push_back(verdicts_[i].get_future());
    const int most = static_cast<int>(verdicts_.size());
    try {
      while (static_cast<int>(threads_.size()) < std::min(threads, most)) {
        threads_.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
      if (threads_.empty()) work();  // run with fewer threads if the system starts no more
    }
  }
  ~ShardChecks() {
    next_ = verdicts_.size();
    for (std::thread& thread : threads_) thread.join();
  }
  ShardChecks(const ShardChecks&) = delete;
  ShardChecks& operator=(const ShardChecks&) = delete;

  /// What is wrong with shard i; "" if it is good. Waits for the result.
  std::string verdict(size_t i) { return results_[i].get(); }

 private:
  void work() {
    for (size_t i; (i = next_++) < verdicts_.size();) {
      const Manifest::ShardEntry& entry = manifest_.shards[i];
      try {
        verify_shard((fs::path(folder_) / entry.file).string(), manifest_, entry);
        verdicts_[i].set_value("");
      } catch (const Error& e) {
        verdicts_[i].set_value(e.what());
      } catch (...) {
        verdicts_[i].set_exception(std::current_exception());
      }
    }
  }

  const std::string& folder_;
  const Manifest& manifest_;
  std::atomic<size_t> next_ = 0;
  std::vector<std::promise<std::string>> verdicts_;
  std::vector<std::future<std::string>> results_;
  std::vector<std::thread> threads_;
};

class Verification {
 public:
  Verification(int threads, std::FILE* out) : threads_(threads), out_(out) {}

  void check_set(const std::string& folder, const Tokenizer* tokenizer) {
    const std::string path = (fs::path(folder) / kManifestName).string();
    std::error_code code;
    if (!fs::exists(folder, code)) {
      throw Error::fault(ExitCode::data, folder, "no such folder", "check the name");
    }
    if (!fs::exists(path, code)) {
      throw Error::fault(
          ExitCode::data, folder, "no " + std::string(kManifestName),
          shards_below(folder, "use `bamdata inspect` on shards without a manifest"));
    }
    const Manifest manifest = read_manifest(path);
    if (manifest.format == 1) {
      fmt::print(
          out_,
          "note {}: format 1 has no digest of its own, so its tokenizer hash, vocabulary and "
          "ids are not verified\n",
          printable(path));
    }
    if (tokenizer && tokenizer->sha256() != manifest.tokenizer_sha256) {
      report_bad(path + ": expected the given tokenizer, SHA-256 " + tokenizer->sha256() +
                 ", found " + manifest.tokenizer_sha256);
    }
    check_tokenizer_file(folder, manifest);
    std::set<std::string> listed;
    ShardChecks checks(folder, manifest, threads_);
    for (size_t i = 0; i < manifest.shards.size(); ++i) {
      const Manifest::ShardEntry& entry = manifest.shards[i];
      listed.insert(entry.file);
      if (const std::string wrong = checks.verdict(i); !wrong.empty()) {
        report_bad(wrong);
      } else {
        fmt::print(out_, "ok   {}: {}, {}\n", printable((fs::path(folder) / entry.file).string()),
                   counted(entry.tokens, "token"), counted(entry.documents, "document"));
      }
      std::fflush(out_);
    }
    std::vector<std::string> others;
    for (const auto& file : fs::directory_iterator(folder, code)) {
      const std::string name = file.path().filename().string();
      const bool hidden = name.starts_with('.');  // not a shard: see ShardSet::open
      if (!hidden && name.ends_with(".bin") && !listed.contains(name))
        others.push_back(file.path().string());
    }
    std::sort(others.begin(), others.end());
    for (const std::string& file : others) report_bad(file + ": not in the manifest");
  }

  int64_t bad() const { return bad_; }

 private:
  void check_tokenizer_file(const std::string& folder, const Manifest& manifest) {
    if (manifest.tokenizer_file.empty()) return;
    const std::string path = (fs::path(folder) / manifest.tokenizer_file).string();
    try {
      const std::string found = sha256_file(path);
      if (found == manifest.tokenizer_sha256) {
        fmt::print(out_, "ok   {}: the tokenizer\n", printable(path));
        return;
      }
      report_bad(path + ": expected SHA-256 " + manifest.tokenizer_sha256 +
                 ", as in the manifest, found " + found);
    } catch (const Error& e) {
      report_bad(e.what());
    }
  }

  void report_bad(const std::string& what) {
    fmt::print(out_, "BAD  {}\n", printable(what));
    ++bad_;
  }

  int threads_;
  std::FILE* out_;
  int64_t bad_ = 0;
};

}  // namespace

void verify(const std::string& path, const std::string& tokenizer, std::FILE* out) {
  std::optional<Tokenizer> given;
  if (!tokenizer.empty()) given = Tokenizer::open(tokenizer);
  Verification verification(std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                            out);
  for (const std::string& folder : shard_sources(path)) {
    verification.check_set(folder, given ? &*given : nullptr);
  }
  if (verification.bad() > 0) {
    throw Error::fault(ExitCode::data, path,
                       std::to_string(verification.bad()) +
                           (verification.bad() == 1 ? " mismatch" : " mismatches") +
                           " with the manifest",
                       "fetch or make the set again");
  }
}

}  // namespace bamtrain
