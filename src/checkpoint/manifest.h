#pragma once
// manifest.json of a checkpoint, the file that vouches for the others:
//
//   {
//     "files": {
//       "model.safetensors": {
//         "bytes": 123,
//         "sha256": "<64 hex digits>"
//       },
//       ...
//     }
//   }
//
// Its own bytes are fixed by what it says: keys sorted, indented by two, a newline at the end. So a
// change of any byte of a checkpoint shows. It has no version: the format is told by state.json,
// which is believed because the manifest vouches for it.

#include <map>
#include <string>

#include "core/durable_file.h"

namespace bamtrain::checkpoint_files {

inline constexpr const char* kModel = "model.safetensors";
inline constexpr const char* kOptimizer = "optimizer.safetensors";
inline constexpr const char* kState = "state.json";
inline constexpr const char* kManifest = "manifest.json";

/// Files by name.
using Digests = std::map<std::string, FileDigest>;

/// Writes the manifest durably. Error (ExitCode::io).
void write_manifest(const std::string& folder, const Digests& files);

/// What the manifest of `folder` lists, all of it found there with that size and SHA-256. Error
/// (ExitCode::checkpoint) naming the file that is not, or the manifest where it is not byte for
/// byte what `write_manifest` writes.
Digests verify_manifest(const std::string& folder);

/// Likewise of the file `name` alone, which must be listed.
void verify_file(const std::string& folder, const std::string& name);

}  // namespace bamtrain::checkpoint_files
