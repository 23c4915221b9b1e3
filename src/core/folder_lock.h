#pragma once
// One process per folder: two runs would mix their metrics and remove each other's checkpoints.

#include <string>

namespace bamtrain {

/// Holds an advisory lock on the file FOLDER/.lock, which the system drops when the process ends
/// however it ends. The file stays. File systems that have no locks give no protection.
class FolderLock {
 public:
  static constexpr const char* kName = ".lock";

  /// Error (ExitCode::io) where another process holds it, naming the process.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// Error (ExitCode::io) where the file was removed or replaced: another run may have come into
  /// the folder since. Takes no memory otherwise.
  void require_held() const;

 private:
  [[noreturn]] void refuse() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace bamtrain
