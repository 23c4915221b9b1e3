#pragma once
// A digest of a file that several processes write: those of its parts add up to it.

#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace bamtrain {

/// The sum modulo 2^64, over the 32-bit words of a part of a file, of a hash of the word and its
/// place (the finalizer of SplitMix64; Steele et al. 2014). REQUIRES: whole words.
inline uint64_t word_sum(int64_t offset, const void* data, int64_t bytes) {
  require(offset % 4 == 0 && bytes % 4 == 0, "whole words");
  const char* const words = static_cast<const char*>(data);
  uint64_t sum = 0;
  for (int64_t n = 0; n < bytes; n += 4) {
    uint32_t word = 0;
    std::memcpy(&word, words + n, sizeof word);
    uint64_t x = static_cast<uint64_t>((offset + n) / 4) * 0x9e3779b97f4a7c15 + word;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    sum += x ^ (x >> 31);
  }
  return sum;
}

}  // namespace bamtrain
