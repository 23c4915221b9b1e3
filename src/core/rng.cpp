#include "core/rng.h"

#include <cmath>
#include <numbers>

namespace bamtrain {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

uint64_t fnv1a64(std::string_view s) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (char ch : s) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001B3ull;
  return h;
}

Rng::Rng(uint64_t seed, std::string_view stream) : seed_(seed), stream_(fnv1a64(stream)) {}

std::array<uint32_t, 4> Rng::block(uint64_t index) const {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                     static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

uint64_t Rng::bits(uint64_t index) const {
  const auto b = block(index);
  return b[0] | (uint64_t{b[1]} << 32);
}

double Rng::uniform(uint64_t index) const {
  return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
}

double Rng::normal(uint64_t index) const {
  const auto b = block(index);
  const double u1 = (static_cast<double>((b[0] | (uint64_t{b[1]} << 32)) >> 11) + 0.5) * 0x1.0p-53;
  const double u2 = static_cast<double>((b[2] | (uint64_t{b[3]} << 32)) >> 11) * 0x1.0p-53;
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2);
}

uint64_t Rng::below(uint64_t index, uint64_t n) const {
  __extension__ using uint128 = unsigned __int128;
  return static_cast<uint64_t>((static_cast<uint128>(bits(index)) * n) >> 64);
}

}  // namespace bamtrain
