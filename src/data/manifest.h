#pragma once
// The manifest beside a set of shards: which tokenizer made them, what each holds.
//
//   {
//     "format": 2,
//     "tokenizer": {"sha256": "<64 hex digits>", "vocab": 32768, "bos": 1, "eos": 2},
//     "document_start": 1,
//     "tokens": 3000, "documents": 7,
//     "shards": [{"file": "000000.bin", "tokens": 3000, "documents": 7, "sha256": "<64 hex
//     digits>"}],
//     "digest": "<64 hex digits>"
//   }
//
// Every field is present; bos, eos and document_start are null where there is no such token. The
// digest is the SHA-256 of all other fields as JSON without white space, in this order. Format 1 is
// the same without it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

/// The name of a manifest in the folder of its shards.
inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  static constexpr int64_t kFormat = 2;

  struct ShardEntry {
    std::string file;       // base name, in the manifest's folder; unique
    int64_t tokens = 0;     // 0 to 2^31 - 1
    int64_t documents = 0;  // that begin in this shard; at most `tokens`
    std::string sha256;     // of the whole file, 64 lower-case hex digits
    bool operator==(const ShardEntry&) const = default;
  };

  int64_t format = kFormat;      // as it was read; 1 has no digest to check the others by
  std::string tokenizer_sha256;  // of the tokenizer's file, 64 lower-case hex digits
  int64_t vocab = 0;             // number of ids of the tokenizer, 1 to 2^31 - 1
  std::optional<int64_t> bos, eos;
  std::optional<int64_t> document_start;  // the id that begins each document
  int64_t tokens = 0, documents = 0;      // the sums over `shards`
  std::vector<ShardEntry> shards;         // in the order of training
  bool operator==(const Manifest&) const = default;
};

/// Error (ExitCode::data) naming the file and the field for anything but a manifest of this format:
/// not JSON, a missing, unknown or repeated field, a wrong type, a number out of range, sums or a
/// digest that do not hold, a newer format. (ExitCode::io) where the file cannot be read.
Manifest read_manifest(const std::string& path);

/// Writes `m`, in format kFormat, so that `path` holds the old content or the new one, whatever
/// happens, and the new one on disk on return. Error (ExitCode::io) for a full disk or a path that
/// cannot be written, (ExitCode::data) where read_manifest would refuse `m`; the old content stays
/// in both cases.
void write_manifest(const std::string& path, const Manifest& m);

}  // namespace bamtrain
