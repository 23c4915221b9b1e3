#pragma once
// manifest.json of a checkpoint, which verifies the other files:
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
// Its content determines its bytes: keys sorted, indented by two, a newline at the end. So a change
// of any byte of a checkpoint is detected. It has no version: state.json holds the format, and the
// manifest verifies state.json.

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

/// Writes the manifest durably. Throws Error (ExitCode::io).
void write_manifest(const std::string& folder, const Digests& files);

/// Returns the files listed in the manifest of `folder`, all verified by size and SHA-256. Throws
/// Error (ExitCode::checkpoint) naming a file that does not match, or the manifest if it is not
/// byte for byte what `write_manifest` writes.
Digests verify_manifest(const std::string& folder);

/// The same for the file `name` alone, which must be listed.
void verify_file(const std::string& folder, const std::string& name);

}  // namespace bamtrain::checkpoint_files
