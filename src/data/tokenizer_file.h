#pragma once
// Copies a tokenizer's file to the folders that need it: next to shards, and to a run's folder.

#include <string>

namespace bamtrain {

/// A tokenizer's file, in memory.
class TokenizerFile {
 public:
  /// Reads the file. Throws Error (data) unless its SHA-256 is `sha256`; (io) if it cannot be read.
  TokenizerFile(const std::string& path, std::string sha256);

  /// Its name, without the folder.
  const std::string& name() const { return name_; }

  /// Writes it to `folder` under its own name, or `prefix` and that, atomically and durably. An
  /// equal file there stays untouched. Throws Error (io) if another file has this name, and as
  /// AtomicFile.
  void write(const std::string& folder, const std::string& prefix = "") const;

 private:
  std::string name_, sha256_, bytes_;
};

}  // namespace bamtrain
