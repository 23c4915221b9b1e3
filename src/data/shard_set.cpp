#include "data/shard_set.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// The *.bin of a folder, unordered. Like a shell's "*" it skips hidden files: "._a.bin" holds
/// macOS metadata of a.bin.
std::vector<fs::path> list_folder(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const bool hidden = it->path().filename().native().starts_with('.');
    if (!hidden && it->path().extension() == ".bin") files.push_back(it->path());
  }
  if (error) {
    throw system_error(ExitCode::io, folder, "list the folder", error.value(),
                       "check permissions and the disk");
  }
  return files;
}

/// Matches of glob(3), unordered.
std::vector<fs::path> list_pattern(const std::string& pattern) {
  struct Matches : glob_t {
    Matches() : glob_t{} {}
    ~Matches() { ::globfree(this); }
  } matches;
  const auto is_fatal = [](const char*, int error) -> int {
    return error != ENOENT && error != ENOTDIR;
  };
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, is_fatal, &matches);
  if (status == GLOB_NOMATCH) return {};
  if (status != 0) {
    throw Error::fault(ExitCode::io, pattern,
                       status == GLOB_NOSPACE ? "too little memory to match the pattern"
                                              : "cannot list the folders of the pattern",
                       "check permissions and the disk");
  }
  return {matches.gl_pathv, matches.gl_pathv + matches.gl_pathc};
}

std::string base_name(const Shard& shard) { return fs::path(shard.path()).filename().string(); }

/// Adds a shard's part of sample().
void add_sample(const Shard& shard, Sha256* digest) {
  std::array<int32_t, ShardSet::kSampleTokens> ids;
  const int64_t n = std::min(shard.tokens(), ShardSet::kSampleTokens);
  for (int64_t k = 0; k < ShardSet::kSamples; ++k) {
    const int64_t begin = (shard.tokens() - n) * k / (ShardSet::kSamples - 1);
    shard.read(begin, n, ids.data(), int64_t{1} << 31);
    digest->update(ids.data(), static_cast<size_t>(n) * sizeof ids[0]);
  }
}

/// Throws Error unless the files are shards of one split in one folder.
void check_layout(const std::vector<fs::path>& files, const std::string& source, bool is_folder) {
  if (files.empty()) {
    const std::string remedy = "check the path, or make shards with `bamdata tokenize`";
    throw Error::fault(
        ExitCode::data, source,
        is_folder ? "no token shards (*.bin) in the folder" : "no file of this name or pattern",
        is_folder ? shards_below(source, remedy) : remedy);
  }
  for (const fs::path& f : files) {
    if (f.parent_path() == files.front().parent_path()) continue;
    throw Error(ExitCode::data, source, "shards of one folder",
                files.front().string() + " and " + f.string(), "put or link them into one folder");
  }
  if (!is_folder) return;
  const auto named = [&](std::string_view part) {
    return std::find_if(files.begin(), files.end(), [part](const fs::path& f) {
      return f.filename().string().find(part) != std::string::npos;
    });
  };
  const auto train = named("_train_"), val = named("_val_");
  if (train != files.end() && val != files.end()) {
    throw Error(ExitCode::data, source, "a folder with the shards of one split",
                train->filename().string() + " and " + val->filename().string(),
                "give patterns: " + (fs::path(source) / "*_train_*.bin").string() + " and " +
                    (fs::path(source) / "*_val_*.bin").string());
  }
}

}  // namespace

ShardSet ShardSet::open(const std::string& folder_or_glob, int64_t vocab) {
  require(vocab >= 1 && vocab <= int64_t{1} << 31, "a vocabulary whose ids fit an int32");
  std::error_code ignored;  // opening the file reports the reason
  const bool is_folder = fs::is_directory(folder_or_glob, ignored);
  std::vector<fs::path> files =
      is_folder ? list_folder(folder_or_glob) : list_pattern(folder_or_glob);
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  check_layout(files, folder_or_glob, is_folder);

  ShardSet set;
  set.source_ = folder_or_glob;
  set.vocab_ = vocab;
  Sha256 digest, sample;
  const auto update = [&digest](std::string_view bytes) {
    digest.update(bytes.data(), bytes.size());
  };
  update("bamtrain shards 1\n");
  for (const fs::path& f : files) {
    set.shards_.push_back(Shard::open(f.string()));
    const Shard& shard = set.shards_.back();
    set.tokens_ += shard.tokens();
    const std::string name = base_name(shard);
    update(std::to_string(name.size()) + " " + name + " " + std::to_string(shard.file_bytes()) +
           "\n");
    digest.update(shard.header().data(), shard.header().size());
    add_sample(shard, &sample);
  }
  set.sample_ = sample.hex();

  const std::string manifest = (files.front().parent_path() / kManifestName).string();
  const fs::file_status status = fs::status(manifest, ignored);
  if (status.type() != fs::file_type::not_found) {
    set.manifest_ = read_manifest(manifest);
    set.check_manifest(manifest, is_folder);
    update("manifest " + sha256_file(manifest) + "\n");
  }
  set.fingerprint_ = digest.hex();
  return set;
}

void ShardSet::check_manifest(const std::string& path, bool complete) const {
  const Manifest& m = *manifest_;
  const std::string remedy = "restore the folder, or make the shards again with bamdata";
  if (m.vocab > vocab_) {
    throw Error(ExitCode::data, path + ": tokenizer.vocab",
                "at most the model's vocabulary of " + std::to_string(vocab_),
                std::to_string(m.vocab), "set model.vocab to it, or use other shards");
  }
  std::map<std::string_view, const Manifest::ShardEntry*> missing;
  for (const Manifest::ShardEntry& e : m.shards) missing[e.file] = &e;
  for (const Shard& shard : shards_) {
    const std::string name = base_name(shard);
    const auto it = missing.find(name);
    if (it == missing.end()) {
      throw Error::fault(ExitCode::data, path + ": shards", "no entry for " + name, remedy);
    }
    if (it->second->tokens != shard.tokens()) {
      throw Error(ExitCode::data, shard.path(),
                  std::to_string(it->second->tokens) + " tokens, as in " + path,
                  std::to_string(shard.tokens()), remedy);
    }
    missing.erase(it);
  }
  if (complete && !missing.empty()) {
    throw Error::fault(ExitCode::data, path + ": shards",
                       std::string(missing.begin()->first) + " is missing from the folder", remedy);
  }
}

std::optional<int64_t> ShardSet::document_start(std::optional<int64_t> configured) const {
  const std::optional<int64_t> named = manifest_ ? manifest_->document_start : std::nullopt;
  if (configured && named && *configured != *named) {
    throw Error(ExitCode::config, "data.document_start",
                std::to_string(*named) + ", as in the manifest of " + source_,
                std::to_string(*configured),
                "--set data.document_start=null to take the manifest's");
  }
  return configured ? configured : named;
}

std::string ShardSet::document_start_remedy() const {
  const std::string set = "--set data.document_start=";
  for (const Shard& s : shards_) {
    if (s.tokens() == 0) continue;
    int32_t id = 0;
    s.read(0, 1, &id, int64_t{1} << 31);
    return set + std::to_string(id) + ", if documents begin with the first token of " + s.path();
  }
  return set + "ID";
}

std::vector<DocumentSpan> ShardSet::documents(int64_t document_start) const {
  if (document_start < 0 || document_start >= vocab_) {
    throw Error(ExitCode::config, "data.document_start",
                "an id from 0 to " + std::to_string(vocab_ - 1), std::to_string(document_start),
                "set it to the BOS id that begins a document");
  }
  std::vector<DocumentSpan> spans;
  for (int64_t i = 0; i < size(); ++i) {
    const Shard& s = shard(i);
    const size_t first = spans.size();
    s.find_all(0, document_start, [&](int64_t begin) {
      if (spans.size() > first) spans.back().length = begin - spans.back().begin;
      spans.push_back({i, begin, s.tokens() - begin});
    });
  }
  return spans;
}

int64_t ShardSet::count(int64_t id, int64_t most) const {
  constexpr int64_t kPiece = int64_t{1} << 16;
  std::vector<int32_t> ids(static_cast<size_t>(std::min(kPiece, most)));
  int64_t found = 0;
  for (const Shard& s : shards_) {
    const int64_t end = std::min(s.tokens(), most);
    most -= end;
    for (int64_t begin = 0; begin < end; begin += kPiece) {
      const int64_t n = std::min(kPiece, end - begin);
      s.read(begin, n, ids.data(), int64_t{1} << 31);
      found += std::count(ids.begin(), ids.begin() + n, id);
    }
  }
  return found;
}

std::string shards_below(const std::string& folder, const std::string& otherwise) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const char* name : {"train", "val"}) {
    const std::string below = (fs::path(folder) / name).string();
    if (fs::is_directory(below, ignored) && !list_folder(below).empty()) found.push_back(below);
  }
  return found.empty() ? otherwise : "did you mean " + join(found, " or ") + "?";
}

void ShardSet::read_span(const DocumentSpan& span, int32_t* out) const {
  require(span.shard >= 0 && span.shard < size(), "a shard of the set");
  shard(span.shard).read(span.begin, span.length, out, vocab_);
}

}  // namespace bamtrain
