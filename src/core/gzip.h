#pragma once
// Decompresses gzip (RFC 1952), also several concatenated members.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bamtrain {

class GzipDecoder {
 public:
  /// Returns the next compressed bytes, valid until the next call; empty at the end.
  using Next = std::function<std::string_view()>;

  /// Whether `start` begins with the gzip magic bytes.
  static bool begins(std::string_view start) { return start.starts_with("\x1F\x8B"); }

  /// Errors name `where`.
  GzipDecoder(std::string where, Next next);
  ~GzipDecoder();

  /// Reads up to `n` bytes into `out`; returns 0 at the end. Throws Error (data) for damaged data,
  /// an end inside a member, and anything but zeros after the last member.
  size_t read(char* out, size_t n);

 private:
  struct Stream;
  bool next_input();
  [[noreturn]] void refuse(const std::string& found) const;

  std::string where_;
  Next next_;
  std::unique_ptr<Stream> stream_;
  bool inside_member_ = false, any_member_ = false;
};

}  // namespace bamtrain
