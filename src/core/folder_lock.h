#pragma once
// One process per folder: two runs would mix their metrics and remove each other's checkpoints.

#include <memory>
#include <string>

namespace bamtrain {

/// Holds an advisory lock on the file FOLDER/.lock. The system releases it when the process ends,
/// however it ends. The file stays. File systems without locks give no protection.
class FolderLock {
 public:
  static constexpr const char* kName = ".lock";
  /// Environment variable: the descriptor of a lock that the parent took for this process.
  static constexpr const char* kInherited = "BAMTRAIN_LOCK";

  /// Takes the lock, or adopts the one that the parent took. Throws Error (ExitCode::io), naming
  /// the other process, if another process holds it.
  explicit FolderLock(const std::string& folder);
  /// Returns null if another process holds the lock.
  static std::unique_ptr<FolderLock> unless_held(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// Throws Error (ExitCode::io) if the lock file was removed or replaced, because another run may
  /// have entered the folder since. Otherwise allocates no memory.
  void require_held() const;

  /// For a child, between fork and exec: shares the lock with the child. It is the child's alone
  /// once the parent releases it.
  void leave_to_program() const;

 private:
  FolderLock() = default;
  /// Returns false if another process holds it, and stores that process's id in `holder`.
  bool take(const std::string& folder, std::string* holder);
  [[noreturn]] void refuse() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace bamtrain
