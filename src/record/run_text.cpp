#include "record/run_text.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "core/sha256.h"
#include "data/shard_set.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;

/// The folder of shards, which are specified as a folder or a glob.
fs::path folder_of(const std::string& shards) {
  std::error_code ignored;
  const fs::path path = fs::absolute(shards, ignored).lexically_normal();
  const fs::path folder = fs::is_directory(path, ignored) ? path / "" : path;
  return folder.parent_path();
}

/// That folder and the two above it.
std::vector<fs::path> folders_around(const std::string& shards) {
  const fs::path folder = folder_of(shards), around = folder.parent_path();
  return {folder, around, around.parent_path()};
}

/// Whether this is the name of a file that a killed process may have left (AtomicFile).
bool is_temporary(const std::string& name) {
  const size_t end = name.rfind(".tmp-");
  return end != std::string::npos && is_temporary_of(name, name.substr(0, end));
}

/// The file in `folder` with this SHA-256; empty if there is none. Skips files that cannot be read,
/// since they need not belong to the run, and temporary ones.
std::string find_model(const fs::path& folder, const std::string& sha256) {
  std::vector<std::string> models;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    const std::string path = it->path().string();
    if (is_temporary(it->path().filename().string())) continue;
    if (it->is_regular_file(ignored) && Tokenizer::begins_like_tokenizer(path))
      models.push_back(path);
  }
  std::sort(models.begin(), models.end());
  for (const std::string& path : models) {
    try {
      if (sha256_file(path) == sha256) return path;
    } catch (const Error&) {
    }
  }
  return "";
}

/// The file that the manifest in this folder names as that tokenizer; empty if it is not there.
std::string tokenizer_named_in(const fs::path& folder, const std::string& sha256) {
  const fs::path path = folder / kManifestName;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  const Manifest m = read_manifest(path.string());
  if (m.tokenizer_sha256 != sha256 || m.tokenizer_file.empty()) return "";
  const fs::path file = folder / m.tokenizer_file;
  return fs::exists(file, ignored) ? file.string() : "";
}

std::string find_tokenizer(const TokenizerSource& source, const RunConfig& c) {
  if (source.sha256.empty()) {
    throw missing(source.unknown, source.name,
                  "the tokenizer file; no manifest next to the shards says which one made them",
                  "give it with " + source.name + source.otherwise);
  }
  std::set<std::string> looked;
  if (!source.run_folder.empty()) {
    const std::string path = find_model(source.run_folder, source.sha256);
    if (!path.empty()) return path;
    looked.insert(source.run_folder);
  }
  std::vector<std::string> sources;
  for (const DataSource& s : c.data.train.list) {
    if (!s.task) sources.push_back(s.path);
  }
  if (!c.data.val.empty()) sources.push_back(c.data.val);
  for (const std::string& shards : sources) {
    const std::string path = tokenizer_named_in(folder_of(shards), source.sha256);
    if (!path.empty()) return path;
  }
  for (const std::string& shards : sources) {
    for (const fs::path& folder : folders_around(shards)) {
      const std::string path = find_model(folder, source.sha256);
      if (!path.empty()) return path;
      looked.insert(folder.string());
    }
  }
  throw Error::fault(ExitCode::data, source.name,
                     "no file of the tokenizer with SHA-256 " + source.sha256 + " in " +
                         join({looked.begin(), looked.end()}),
                     "give its path with " + source.name + source.otherwise);
}

}  // namespace

std::optional<Manifest> training_manifest(const RunConfig& c) {
  std::optional<Manifest> found;
  for (const DataSource& s : c.data.train.list) {
    if (s.task) continue;
    const ShardSet shards = ShardSet::open(s.path, c.model.vocab);
    if (shards.manifest()) found = shards.manifest();
  }
  return found;
}

std::string training_tokenizer_sha256(const RunConfig& c) {
  const std::optional<Manifest> manifest = training_manifest(c);
  return manifest ? manifest->tokenizer_sha256 : "";
}

std::string training_tokenizer(const RunConfig& c, const std::string& given,
                               const std::string& sha256) {
  if (!given.empty() || !sha256.empty()) return given;
  for (const DataSource& s : c.data.train.list) {
    if (s.task && s.task->info == &passkey_task()) return s.task->options.text("tokenizer");
  }
  return "";
}

std::string tokenizer_path(const TokenizerSource& source, const RunConfig& c) {
  return source.path.empty() ? find_tokenizer(source, c) : source.path;
}

Tokenizer open_tokenizer(const TokenizerSource& source, const RunConfig& c) {
  const std::string path = tokenizer_path(source, c);
  Tokenizer tokenizer = Tokenizer::open(path);
  if (!source.sha256.empty() && tokenizer.sha256() != source.sha256) {
    throw Error(ExitCode::data, path, "the model's tokenizer, SHA-256 " + source.sha256,
                tokenizer.sha256(), "give the model's with " + source.name);
  }
  if (tokenizer.vocab() > c.model.vocab) {
    throw Error(ExitCode::data, path,
                "a tokenizer of at most model.vocab = " + std::to_string(c.model.vocab) + " ids",
                std::to_string(tokenizer.vocab()),
                "give the tokenizer that made the shards with " + source.name);
  }
  return tokenizer;
}

std::optional<int64_t> document_start(const RunConfig& c, const std::string& sha256) {
  if (c.data.document_start) return c.data.document_start;
  for (const DataSource& s : c.data.train.list) {
    if (s.task) continue;
    const fs::path manifest = folder_of(s.path) / kManifestName;
    std::error_code ignored;
    if (!fs::exists(manifest, ignored)) continue;
    const Manifest m = read_manifest(manifest.string());
    if (sha256.empty() || m.tokenizer_sha256 == sha256) return m.document_start;
  }
  return std::nullopt;
}

std::optional<int64_t> document_start(const RunConfig& c, const Tokenizer& tokenizer) {
  if (const auto start = document_start(c, tokenizer.sha256())) return start;
  return tokenizer.bos() >= 0 ? std::optional<int64_t>(tokenizer.bos()) : std::nullopt;
}

}  // namespace bamtrain
