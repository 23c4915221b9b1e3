#pragma once
// The text of gzip (RFC 1952), of several members one after the other.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bamtrain {

class GzipDecoder {
 public:
  /// The next compressed bytes, valid until it is called again; none at their end.
  using Next = std::function<std::string_view()>;

  /// Whether `start` begins gzip.
  static bool begins(std::string_view start) { return start.starts_with("\x1F\x8B"); }

  /// `where` is named in errors.
  GzipDecoder(std::string where, Next next);
  ~GzipDecoder();

  /// Up to `n` bytes into `out`; 0 at the end. Error (data) for damaged data, an end inside a
  /// member and, but for zeros, anything behind the last one.
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
