#include "data_tools/shard_set_writer.h"

#include <fmt/format.h>

#include <utility>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {
namespace {

std::optional<int64_t> id_or_none(int32_t id) {
  return id < 0 ? std::nullopt : std::optional<int64_t>(id);
}

}  // namespace

ShardSetWriter::ShardSetWriter(const std::string& folder, const Tokenizer& tokenizer,
                               int64_t shard_tokens, State state)
    : folder_(folder),
      width_(width_of(tokenizer)),
      shard_tokens_(shard_tokens),
      tokenizer_(tokenizer.path(), tokenizer.sha256()) {
  require(shard_tokens >= 1 && tokenizer.bos() >= 0, "a shard size and a BOS");
  manifest_.tokenizer_file = tokenizer_.name();
  manifest_.tokenizer_sha256 = tokenizer.sha256();
  manifest_.vocab = tokenizer.vocab();
  manifest_.bos = id_or_none(tokenizer.bos());
  manifest_.eos = id_or_none(tokenizer.eos());
  manifest_.document_start = manifest_.bos;
  manifest_.shards = std::move(state);
  for (const Manifest::ShardEntry& entry : manifest_.shards) {
    manifest_.documents += entry.documents;
    manifest_.tokens += entry.tokens;
    if (entry.sha256.empty()) {
      shard_.emplace(path_of(entry), width_, entry.tokens);
    } else if (const int64_t found = Shard::open(path_of(entry)).tokens(); found != entry.tokens) {
      throw Error(ExitCode::data, path_of(entry),
                  std::to_string(entry.tokens) + " tokens, as written", std::to_string(found),
                  "remove the folder, and start over");
    }
  }
}

void ShardSetWriter::append(std::span<const int32_t> document) {
  const auto length = static_cast<int64_t>(document.size());
  if (shard_ && shard_->tokens() + length > ShardFormat::kMaxTokens) close_shard();
  if (!shard_) {
    manifest_.shards.push_back({fmt::format("{:06}.bin", manifest_.shards.size()), 0, 0, ""});
    shard_.emplace(path_of(manifest_.shards.back()), width_);
  }
  shard_->append({reinterpret_cast<const uint32_t*>(document.data()), document.size()});
  const int64_t begins = document.front() == *manifest_.document_start;
  manifest_.shards.back().tokens = shard_->tokens();
  manifest_.shards.back().documents += begins;
  manifest_.documents += begins;
  manifest_.tokens += length;
  if (shard_->tokens() >= shard_tokens_) close_shard();
}

void ShardSetWriter::close_shard() {
  manifest_.shards.back().sha256 = shard_->finish();
  shard_.reset();
}

ShardSetWriter::State ShardSetWriter::sync() {
  if (shard_) shard_->sync();
  sync_folder(folder_);
  return manifest_.shards;
}

Manifest ShardSetWriter::finish() {
  require(!manifest_.shards.empty(), "a set of at least one document");
  if (shard_) close_shard();
  sync_folder(folder_);
  write_manifest(folder_ + "/" + kManifestName, manifest_);
  tokenizer_.write(folder_);
  return manifest_;
}

}  // namespace bamtrain
