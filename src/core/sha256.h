#pragma once
// SHA-256 (OpenSSL), for manifests and fingerprints.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace bamtrain {

/// Streaming digest: update any number of times, then hex once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, size_t bytes);
  std::string hex();  // 64 lower-case digits; the object cannot be used afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view data);
/// Digest of a whole regular file. Throws Error (ExitCode::io) if it cannot be read.
std::string sha256_file(const std::string& path);

}  // namespace bamtrain
