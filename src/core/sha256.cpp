#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/error.h"
#include "core/input_file.h"

namespace bamtrain {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
          "a SHA-256 context from libcrypto");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t bytes) {
  require(EVP_DigestUpdate(state_->context, data, bytes) == 1, "libcrypto to digest");
}

std::string Sha256::hex() {
  unsigned char digest[32];
  unsigned int n = 0;
  require(EVP_DigestFinal_ex(state_->context, digest, &n) == 1 && n == 32, "libcrypto to finish");
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string sha256_hex(std::string_view data) {
  Sha256 h;
  h.update(data.data(), data.size());
  return h.hex();
}

std::string sha256_file(const std::string& path) {
  return InputFile(path, ExitCode::io, "check the path").sha256();
}

}  // namespace bamtrain
