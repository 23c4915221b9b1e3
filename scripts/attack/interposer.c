// Loaded before the C library (LD_PRELOAD), counts the calls of a program that change what is on
// the disk beneath a folder, and disturbs one of them. Told by the environment:
//
//   ATTACK_FOLDER   the folder, absolute, without symbolic links
//   ATTACK_LOG      a file that gets a line "NUMBER NAME PATH" before each call
//   ATTACK_CALL     which call is disturbed, from 1 on; 0: none
//   ATTACK_ACTION   "kill" before the call, "torn": after the first half of a write, or an errno
//                   value with which it fails without being attempted
//
// Calls within the C library do not pass here: fopen and fclose are not seen (the program under
// attack reads with them), and remove is counted as itself.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int g_calls = 0;

static int is_beneath(const char* path) {
  const char* folder = getenv("ATTACK_FOLDER");
  const size_t length = folder ? strlen(folder) : 0;
  if (length == 0 || strncmp(path, folder, length) != 0) return 0;
  return path[length] == '/' || path[length] == '\0' || path[length] == ' ';
}

/// Where `path`, relative to a descriptor or to AT_FDCWD, lies.
static void place_of(int at, const char* path, char* out) {
  char folder[PATH_MAX] = "";
  if (path[0] != '/') {
    char link[64] = "/proc/self/cwd";
    if (at != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    const ssize_t n = readlink(link, folder, sizeof folder - 2);
    folder[n > 0 ? n : 0] = '\0';
    strcat(folder, "/");
  }
  snprintf(out, 2 * PATH_MAX, "%s%s", folder, path);
}

/// The number of a call that counts; 0: another.
static int count(const char* name, const char* place) {
  const char* log = getenv("ATTACK_LOG");
  if (!log || !is_beneath(place)) return 0;
  const int number = __atomic_add_fetch(&g_calls, 1, __ATOMIC_SEQ_CST);
  char line[2 * PATH_MAX + 64];
  const int n = snprintf(line, sizeof line, "%d %s %s\n", number, name, place);
  const int descriptor =
      (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
  syscall(SYS_write, descriptor, line, (size_t)n);
  syscall(SYS_close, descriptor);
  return number;
}

static int is_disturbed(int number) {
  const char* call = getenv("ATTACK_CALL");
  return number > 0 && call && atoi(call) == number;
}

/// 0: the call goes on. Else it fails with errno as it is now. Does not return from a kill.
static int disturb(int number) {
  if (!is_disturbed(number)) return 0;
  const char* action = getenv("ATTACK_ACTION");
  const int error = action ? atoi(action) : 0;
  if (error == 0) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  errno = error;
  return 1;
}

static int changes_path(const char* name, int at, const char* path) {
  char place[2 * PATH_MAX];
  place_of(at, path, place);
  return disturb(count(name, place));
}

/// The call's number; 0 where the descriptor is of no file beneath the folder.
static int count_descriptor(const char* name, int descriptor) {
  char link[64], place[2 * PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const int before = errno;
  const ssize_t n = readlink(link, place, sizeof place - 1);
  errno = before;
  if (n <= 0) return 0;
  place[n] = '\0';
  return count(name, place);
}

static int changes_descriptor(const char* name, int descriptor) {
  return disturb(count_descriptor(name, descriptor));
}

#define OPEN_CHANGES(flags) (((flags) & (O_CREAT | O_TRUNC)) || ((flags)&O_TMPFILE) == O_TMPFILE)
#define WITH_MODE(flags)                                       \
  mode_t mode = 0;                                             \
  if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                              \
    va_start(more, flags);                                     \
    mode = va_arg(more, mode_t);                               \
    va_end(more);                                              \
  }

int open(const char* path, int flags, ...) {
  WITH_MODE(flags)
  if (OPEN_CHANGES(flags) && changes_path("open", AT_FDCWD, path)) return -1;
  return NEXT(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  WITH_MODE(flags)
  if (OPEN_CHANGES(flags) && changes_path("open", AT_FDCWD, path)) return -1;
  return NEXT(open64)(path, flags, mode);
}

int openat(int at, const char* path, int flags, ...) {
  WITH_MODE(flags)
  if (OPEN_CHANGES(flags) && changes_path("openat", at, path)) return -1;
  return NEXT(openat)(at, path, flags, mode);
}

int openat64(int at, const char* path, int flags, ...) {
  WITH_MODE(flags)
  if (OPEN_CHANGES(flags) && changes_path("openat", at, path)) return -1;
  return NEXT(openat64)(at, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
  if (changes_path("creat", AT_FDCWD, path)) return -1;
  return NEXT(creat)(path, mode);
}

/// Before a write: 1 where it fails.
static int write_fails(const char* name, int descriptor, const void* data, size_t bytes) {
  const int number = count_descriptor(name, descriptor);
  const char* action = getenv("ATTACK_ACTION");
  if (is_disturbed(number) && action && strcmp(action, "torn") == 0) {
    syscall(SYS_write, descriptor, data, bytes / 2);
  }
  return disturb(number);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  if (write_fails("write", descriptor, data, bytes)) return -1;
  return NEXT(write)(descriptor, data, bytes);
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  if (changes_descriptor("pwrite", descriptor)) return -1;
  return NEXT(pwrite)(descriptor, data, bytes, offset);
}

ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  if (changes_descriptor("pwrite", descriptor)) return -1;
  return NEXT(pwrite64)(descriptor, data, bytes, offset);
}

ssize_t writev(int descriptor, const struct iovec* pieces, int count_of_pieces) {
  if (changes_descriptor("writev", descriptor)) return -1;
  return NEXT(writev)(descriptor, pieces, count_of_pieces);
}

int fsync(int descriptor) {
  if (changes_descriptor("fsync", descriptor)) return -1;
  return NEXT(fsync)(descriptor);
}

int fdatasync(int descriptor) {
  if (changes_descriptor("fdatasync", descriptor)) return -1;
  return NEXT(fdatasync)(descriptor);
}

int ftruncate(int descriptor, off_t bytes) {
  if (changes_descriptor("ftruncate", descriptor)) return -1;
  return NEXT(ftruncate)(descriptor, bytes);
}

int ftruncate64(int descriptor, off64_t bytes) {
  if (changes_descriptor("ftruncate", descriptor)) return -1;
  return NEXT(ftruncate64)(descriptor, bytes);
}

int truncate(const char* path, off_t bytes) {
  if (changes_path("truncate", AT_FDCWD, path)) return -1;
  return NEXT(truncate)(path, bytes);
}

int truncate64(const char* path, off64_t bytes) {
  if (changes_path("truncate", AT_FDCWD, path)) return -1;
  return NEXT(truncate64)(path, bytes);
}

/// Attacks do not concern descriptors of files that were read. One that fails is closed
/// all the same, as on Linux.
int close(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  const int writes = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
  const int fails = writes && changes_descriptor("close", descriptor);
  const int error = errno;
  const int result = NEXT(close)(descriptor);
  if (!fails) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) {
  if (changes_path("rename", AT_FDCWD, from)) return -1;
  return NEXT(rename)(from, to);
}

int renameat(int at, const char* from, int to_at, const char* to) {
  if (changes_path("renameat", at, from)) return -1;
  return NEXT(renameat)(at, from, to_at, to);
}

int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) {
  if (changes_path("renameat2", at, from)) return -1;
  return NEXT(renameat2)(at, from, to_at, to, flags);
}

int link(const char* from, const char* to) {
  if (changes_path("link", AT_FDCWD, to)) return -1;
  return NEXT(link)(from, to);
}

int linkat(int at, const char* from, int to_at, const char* to, int flags) {
  if (changes_path("linkat", to_at, to)) return -1;
  return NEXT(linkat)(at, from, to_at, to, flags);
}

int symlink(const char* target, const char* path) {
  if (changes_path("symlink", AT_FDCWD, path)) return -1;
  return NEXT(symlink)(target, path);
}

int mkdir(const char* path, mode_t mode) {
  if (changes_path("mkdir", AT_FDCWD, path)) return -1;
  return NEXT(mkdir)(path, mode);
}

int mkdirat(int at, const char* path, mode_t mode) {
  if (changes_path("mkdirat", at, path)) return -1;
  return NEXT(mkdirat)(at, path, mode);
}

int unlink(const char* path) {
  if (changes_path("unlink", AT_FDCWD, path)) return -1;
  return NEXT(unlink)(path);
}

int unlinkat(int at, const char* path, int flags) {
  if (changes_path("unlinkat", at, path)) return -1;
  return NEXT(unlinkat)(at, path, flags);
}

int rmdir(const char* path) {
  if (changes_path("rmdir", AT_FDCWD, path)) return -1;
  return NEXT(rmdir)(path);
}

int remove(const char* path) {
  if (changes_path("remove", AT_FDCWD, path)) return -1;
  return NEXT(remove)(path);
}
