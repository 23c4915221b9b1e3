#pragma once
// One process per folder: two runs would mix their metrics and remove each other's checkpoints.

#include <memory>
#include <string>

namespace bamtrain {

/// Holds an advisory lock on the file FOLDER/.lock, which the system drops when the process ends
/// however it ends. The file stays. File systems that have no locks give no protection.
class FolderLock {
 public:
  static constexpr const char* kName = ".lock";
  /// The variable that names an open file to a process whose parent has taken the lock for it.
  static constexpr const char* kInherited = "BAMTRAIN_LOCK";

  /// Takes it, or what the parent has taken. Error (ExitCode::io) where another process holds it,
  /// naming the process.
  explicit FolderLock(const std::string& folder);
  /// Null where another process holds it.
  static std::unique_ptr<FolderLock> unless_held(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// Error (ExitCode::io) where the file was removed or replaced: another run may have come into
  /// the folder since. Takes no memory otherwise.
  void require_held() const;

  /// For a child, between fork and exec: the lock is the child's as well, and its alone when the
  /// parent has let go.
  void leave_to_program() const;

 private:
  FolderLock() = default;
  /// False where another process holds it; its number to `holder`.
  bool take(const std::string& folder, std::string* holder);
  [[noreturn]] void refuse() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace bamtrain
