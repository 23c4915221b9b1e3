#pragma once
// The manifest of a set of shards: the tokenizer that made them and the contents of each.
//
//   {
//     "format": 3,
//     "tokenizer": {"file": "tokenizer.model", "sha256": "<64 hex digits>", "vocab": 32768, "bos":
//     1,
//                   "eos": 2},
//     "document_start": 1,
//     "tokens": 3000, "documents": 7,
//     "shards": [{"file": "000000.bin", "tokens": 3000, "documents": 7, "sha256": "<64 hex
//     digits>"}],
//     "digest": "<64 hex digits>"
//   }
//
// Every field is required; bos, eos and document_start are null if there is no such token, and the
// tokenizer's file is null if it is not in the folder. The digest is the SHA-256 of all other
// fields as JSON without white space, in this order. Format 2 has no tokenizer.file, and format 1
// no digest either; otherwise they are the same.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

/// File name of the manifest, in the shards' folder.
inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  static constexpr int64_t kFormat = 3;

  struct ShardEntry {
    std::string file;       // base name, in the manifest's folder; unique
    int64_t tokens = 0;     // 0 to 2^31 - 1
    int64_t documents = 0;  // documents that begin in this shard; at most `tokens`
    std::string sha256;     // of the whole file, 64 lowercase hex digits
    bool operator==(const ShardEntry&) const = default;
  };

  int64_t format = kFormat;      // as read; format 1 has no digest
  std::string tokenizer_file;    // base name, in the manifest's folder; empty: not there
  std::string tokenizer_sha256;  // of the tokenizer's file, 64 lowercase hex digits
  int64_t vocab = 0;             // number of the tokenizer's ids, 1 to 2^31 - 1
  std::optional<int64_t> bos, eos;
  std::optional<int64_t> document_start;  // the id that begins each document
  int64_t tokens = 0, documents = 0;      // sums over `shards`
  std::vector<ShardEntry> shards;         // in training order
  bool operator==(const Manifest&) const = default;
};

/// Why no manifest can name a tokenizer's file so, in words for an error; "" if one can. Shards and
/// the manifest itself need their names, and programs skip hidden files.
std::string tokenizer_name_fault(const std::string& name);

/// Throws Error (ExitCode::data) with file and field for anything but a valid manifest: not JSON; a
/// missing, unknown or repeated field; a wrong type; a number out of range; wrong sums or digest; a
/// newer format. Throws Error (ExitCode::io) if the file cannot be read.
Manifest read_manifest(const std::string& path);

/// Writes `m`, in format kFormat, atomically: `path` holds the old content or the new one, whatever
/// happens. The new content is on disk on return. Throws Error (ExitCode::io) for a full disk or a
/// path that cannot be written, and Error (ExitCode::data) if read_manifest would refuse `m`; both
/// keep the old content.
void write_manifest(const std::string& path, const Manifest& m);

}  // namespace bamtrain
